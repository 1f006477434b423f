#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {

// Gives scratch memory at least `count` elements. It never becomes smaller, so calls whose sizes
// repeat allocate nothing and clear nothing.
template <class T>
void grow(AlignedVector<T>& scratch, std::size_t count) {
  if (scratch.size() < count) scratch.resize(count);
}

// Returns the cut of an operand's columns for cells that product_cells() made for a product. Rows
// that do not begin at the boundaries of vectors are copied where that pays, unless they are parts
// of vectors: those are not aligned either, but copies of them have to pay anyway.
template <class T>
HostColumns operand_columns(const HostCells& cells, const HostProblem& problem,
                            MatrixView<const T> in, const host::HostCpu& cpu) {
  if (!problem.block.is_element() && !in.rows_are_contiguous()) return turned_columns(in.cols);
  HostColumns columns = product_columns(cells, problem, in.cols, cpu);
  if (!copies_unaligned(problem, cpu)) return columns;
  const std::int64_t elements = cpu.vector.value / std::int64_t{sizeof(T)};
  const std::int64_t whole = whole_vectors(columns.width, elements);
  columns.pack |= whole == columns.width && !rows_are_aligned(in, std::min(elements, whole));
  return columns;
}

// A dense operand [rows][z] in panels of columns, as kernels read it: in place, or copied so that
// the rows of a panel are contiguous. Rows beyond the caller's are zero. Copies are kept of all
// panels, or of one only, which is then still in the nearest caches when it is used. Every call may
// have another number of columns. T is the type that kernels read and From the operand's; if they
// differ, panels are always copied, and widened.
template <class T, class From = T>
class HostPanels {
 public:
  enum class Kept { All, One };

  explicit HostPanels(Kept kept) : kept_(kept) {}

  // Sets the number of rows that kernels may read, which must be at least that of the operands. The
  // storage of copies is kept.
  void set_rows(std::int64_t rows) { rows_ = rows; }

  std::int64_t count() const { return ceil_div(from_.cols, cut_.width); }
  Range columns(std::int64_t panel) const {
    return {panel * cut_.width, std::min((panel + 1) * cut_.width, from_.cols)};
  }

  // Takes an operand. Its panels will be copied if `cut.pack` is true or if kernels cannot read it
  // in place. Allocates if the copies need more memory than those of all calls before.
  void begin(MatrixView<const From> from, const HostColumns& cut) {
    from_ = from;
    cut_ = cut;
    copied_ =
        !std::is_same_v<T, From> || cut.pack || !from.rows_are_contiguous() || from.rows < rows_;
    if (copied_) grow(copy_, std::size_t(rows_ * cut.stride * (kept_ == Kept::All ? count() : 1)));
  }

  // Copies these panels if they have to be copied. Must be called before panel() of them.
  void read(Range panels, Executor& executor) {
    if (!copied_) return;
    const std::int64_t chunks = ceil_div(rows_, kChunk);
    const std::int64_t elements = rows_ * cut_.width * panels.size();
    share_copies(executor, chunks * panels.size(), elements, [&](std::int64_t i) {
      const std::int64_t first = i % chunks * kChunk;
      copy_rows(panels.begin + i / chunks, {first, std::min(first + kChunk, rows_)});
    });
  }

  // Returns rows [rows.begin, rows.end) of a panel.
  codelets::Operand panel(std::int64_t panel, Range rows) const {
    const Range cols = columns(panel);
    if (!copied_)
      return {from_.row(rows.begin) + cols.begin, rows.size(), cols.size(), from_.row_stride};
    return {copy_.data() + copied_row(panel, rows.begin), rows.size(), computed(panel),
            cut_.stride};
  }

  // Returns the columns of panel(), of which those behind columns() are zeros.
  std::int64_t computed(std::int64_t panel) const {
    const std::int64_t given = columns(panel).size();
    return copied_ ? cut_.computed(given) : given;
  }

 private:
  static constexpr std::int64_t kChunk = 64;  // rows

  std::size_t copied_row(std::int64_t panel, std::int64_t row) const {
    return std::size_t(((kept_ == Kept::All ? panel : 0) * rows_ + row) * cut_.stride);
  }
  void copy_rows(std::int64_t panel, Range rows) {
    const Range cols = columns(panel);
    const Range given{rows.begin, std::clamp(from_.rows, rows.begin, rows.end)};
    const std::int64_t filled = computed(panel);
    copy_filled_rows<From>(from_.sub(given, cols), copy_.data() + copied_row(panel, rows.begin),
                           cut_.stride, filled);
    for (std::int64_t r = given.end; r < rows.end; ++r)
      std::fill_n(copy_.data() + copied_row(panel, r), filled, T());
  }

  std::int64_t rows_ = 0;
  HostColumns cut_;
  Kept kept_;
  MatrixView<const From> from_;
  bool copied_ = false;
  AlignedVector<T> copy_;
};

}  // namespace tessera::host::internal
