#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/place_dots.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/share_work.hpp"

// The gradient dQ * transpose(S) at lists of places (gradient_places.hpp, sddmm.hpp).
namespace tessera::host::internal {

inline constexpr std::int64_t kVectorBytes = 64;  // of the widest vectors, and of a cache line
inline constexpr std::int64_t kRowsAtOnce = 64;   // block rows of one call of a kernel
// Block rows that are taken together at most. The more they are, the more often is a slice of S
// used while it is in a near cache. A single thread needs no parts to share.
inline constexpr std::int64_t kMostRows = 1024;

// Calls run(thread, rows) for all block rows, in parts that threads take from a counter. `sums` is
// the work of all, as in share_units().
template <class Run>
void for_each_rows(std::int64_t rows, std::int64_t sums, Executor& executor, Run&& run) {
  const std::int64_t part = executor.threads() == 1 ? kMostRows : kRowsAtOnce;
  SharedParts parts(rows, part);
  share_units(executor, sums, [&](std::int64_t thread) {
    while (const auto own = parts.next()) run(thread, *own);
  });
}

// Some block rows of a pattern. The search for the places of one slice of S goes on where that of
// the slice before ended, so every place is found once, in whatever order the columns are. There
// are at most kMostRows rows.
template <class Index, class Position>
class PlaceRows {
 public:
  PlaceRows(std::span<const Position> row_begin, std::span<const Index> col, Range rows)
      : row_begin_(row_begin), col_(col), rows_(rows) {}

  Range rows() const { return rows_; }
  // Returns the columns of all places from this one on.
  std::span<const Index> columns_from(std::int64_t place) const {
    return col_.subspan(std::size_t(place));
  }
  void start() {
    for (std::int64_t r = 0; r < rows_.size(); ++r)
      next_[std::size_t(r)] = row_begin_[std::size_t(rows_.begin + r)];
  }
  // Returns the next places of a row in groups of `group`, up to the first group whose middle is
  // not below `end`.
  Range below(std::int64_t row, std::int64_t end, std::int64_t group) {
    std::int64_t& next = next_[std::size_t(row - rows_.begin)];
    const std::int64_t first = next, last = row_begin_[std::size_t(row) + 1] - group;
    while (next <= last && std::int64_t(col_[std::size_t(next + group / 2)]) < end) next += group;
    return {first, next};
  }
  // Returns the places of a row that are left.
  Range rest(std::int64_t row) {
    return {next_[std::size_t(row - rows_.begin)], row_begin_[std::size_t(row) + 1]};
  }

 private:
  std::span<const Position> row_begin_;
  std::span<const Index> col_;
  Range rows_;
  std::array<std::int64_t, kMostRows> next_;  // of rows(), after start()
};

// The dense operands of a gradient: q_grad [x][z] and s [y][z].
template <class T>
struct DotOperands {
  MatrixView<const T> q_grad, s;
};

// The operands in panels of the batch, and the slices of S that stay in a near cache. T is the type
// of the operands and Index that of the columns; gradients are floats.
template <class T, class Index>
class PlaceGradient {
 public:
  using Kept = typename HostPanels<T>::Kept;

  explicit PlaceGradient(Kept kept) : q_grad_(kept), s_(kept) {}

  // Takes operands for a pattern of so many blocks, cut for this computer, and reads all panels.
  PlaceGradient(BlockShape block, std::int64_t places, const DotOperands<T>& batch,
                Executor& executor)
      : PlaceGradient(Kept::All) {
    begin(block, places, batch);
    read({0, panels()}, executor);
  }

  // Takes operands for a pattern of so many blocks, cut for this computer.
  void begin(BlockShape block, std::int64_t places, const DotOperands<T>& batch) {
    static const HostCpu cpu = read_host_cpu();
    const std::int64_t x = round_up(batch.q_grad.rows, block.rows);
    const std::int64_t y = round_up(batch.s.rows, block.cols), z = batch.s.cols;
    const HostProblem problem{{1, x, y, z}, block, places, data_type_of<T>()};
    begin(problem, gradient_cells(problem, cpu), batch);
  }

  // Takes the operands of a call. The size of the problem is that of the padded matrix. Allocates
  // if copies of the panels that are kept need more memory than those of all calls before.
  void begin(const HostProblem& problem, const HostCells& cells, const DotOperands<T>& batch) {
    block_ = problem.block;
    block_cols_ = problem.size.y / block_.cols;
    slice_ = std::max<std::int64_t>(cells.y / block_.cols, 1);
    group_ = group_of(problem, slice_);
    HostColumns columns = gradient_columns(cells, batch.s.cols);
    columns.stride = round_up(columns.width, kVectorBytes / std::int64_t{sizeof(T)});
    columns.pack &= !reads_in_place(problem, batch.s.row_stride);
    columns.pack |= is_cheaper_copied(problem, batch.s);
    s_.set_rows(problem.size.y);
    s_.begin(batch.s, columns);
    columns.pack = is_read_often(problem);
    q_grad_.set_rows(problem.size.x);
    q_grad_.begin(batch.q_grad, columns);
  }

  std::int64_t panels() const { return s_.count(); }
  std::int64_t columns(std::int64_t panel) const { return s_.columns(panel).size(); }

  // Copies these panels where they have to be copied: one, unless all are kept. Must be called
  // before they are used.
  void read(Range panels, Executor& executor) {
    q_grad_.read(panels, executor);
    s_.read(panels, executor);
  }

  // Sets or, with `adds`, increases the gradients of the places in some block rows by all panels.
  // gradients[0] belongs to place `origin`, and row 0 of the places to row `first_row` of q_grad.
  // Rows are not copied: their positions may be more than a small gradient.
  template <class Position>
  void run(PlaceRows<Index, Position>&& next, std::span<float> gradients, std::int64_t origin = 0,
           bool adds = false, std::int64_t first_row = 0) const {
    for (std::int64_t panel = 0; panel < panels(); ++panel)
      run_panel(panel, next, gradients, origin, adds || panel > 0, first_row);
  }

  // Does the same by one panel.
  template <class Position>
  void run_panel(std::int64_t panel, PlaceRows<Index, Position>& next, std::span<float> gradients,
                 std::int64_t origin, bool adds, std::int64_t first_row = 0) const {
    const Range rows = next.rows();
    std::array<codelets::RowPlaces, kRowsAtOnce> list;
    next.start();
    for (std::int64_t col = 0; col < block_cols_; col += slice_) {
      std::size_t count = 0;
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const Range places =
            col + slice_ < block_cols_ ? next.below(row, col + slice_, group_) : next.rest(row);
        if (places.size() > 0)
          list[count++] = {first_row + row, places.begin - origin, places.size()};
        if (count < list.size() && row + 1 < rows.end) continue;
        compute(panel, {list.data(), count}, next.columns_from(origin), gradients.data(), adds);
        count = 0;
      }
    }
  }

  // Does the same for the places of one block row and one panel.
  void add(std::int64_t panel, std::int64_t row, std::span<const Index> columns, float* gradients,
           bool adds) const {
    const codelets::RowPlaces places{row, 0, std::ssize(columns)};
    compute(panel, {&places, 1}, columns, gradients, adds);
  }

 private:
  // Returns true if rows of dQ are read for so many slices of S that they are copied, too. AMD Zen
  // 3, two panels of 1024 x 1024: density 0.1, four slices, 0.93 of the time; 1/64, two slices,
  // 1.09, because the rows are fetched from memory while products run.
  bool is_read_often(const HostProblem& problem) const {
    constexpr std::int64_t kFewestSlices = 4;
    return s_.count() > 1 && problem.block.is_element() &&
           ceil_div(block_cols_, slice_) >= kFewestSlices;
  }
  // Returns true if the rows of S are not at the boundaries of vectors, which took GradW of
  // elements 1.8 times as long on Sapphire Rapids; a copy costs about as much as a few uses of each
  // row.
  static bool is_cheaper_copied(const HostProblem& problem, MatrixView<const T> s) {
    constexpr std::int64_t kFewestUses = 4;
    constexpr std::int64_t kElements = kVectorBytes / std::int64_t{sizeof(T)};
    const std::int64_t block_cols = problem.size.y / problem.block.cols;
    return !rows_are_aligned(s, kElements) && s.cols >= kElements &&
           problem.blocks * problem.block.rows >= kFewestUses * block_cols;
  }
  // Kernels add up sixteen dot products of a row together, and a row's end interrupts the stream of
  // rows of S. So a slice takes places of a row in groups as large as half of what it has on
  // average. Some then are outside of it, which costs less than parts of groups.
  static std::int64_t group_of(const HostProblem& problem, std::int64_t slice) {
    constexpr std::int64_t kMostInGroup = 16;
    if (!problem.block.is_element() || slice >= problem.size.y) return 1;
    const double cells = double(problem.size.x) * double(problem.size.y) / double(slice);
    const auto half = static_cast<std::uint64_t>(double(problem.blocks) / cells / 2);
    return std::clamp(static_cast<std::int64_t>(std::bit_floor(half)), std::int64_t{1},
                      kMostInGroup);
  }
  void compute(std::int64_t panel, std::span<const codelets::RowPlaces> rows,
               std::span<const Index> columns, float* gradients, bool adds) const {
    const codelets::Operand q_grad = q_grad_.panel(panel, {0, 0});
    const codelets::Operand s = s_.panel(panel, {0, block_cols_ * block_.cols});
    codelets::place_dots(codelets::PlaceDots<T, Index>{.block = block_,
                                                       .rows = rows,
                                                       .columns = columns,
                                                       .q_grad = static_cast<const T*>(q_grad.data),
                                                       .q_grad_stride = q_grad.row_stride,
                                                       .s = static_cast<const T*>(s.data),
                                                       .s_stride = s.row_stride,
                                                       .z = q_grad.z,
                                                       .gradients = gradients,
                                                       .replaces = !adds});
  }

  BlockShape block_;
  std::int64_t slice_ = 1, block_cols_ = 0;  // block columns
  std::int64_t group_ = 1;                   // places of a row that one slice has together
  HostPanels<T> q_grad_, s_;
};

}  // namespace tessera::host::internal
