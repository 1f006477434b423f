#include "tessera/host/gradient_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/place_dots.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/internal/panels.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kRows = 64;  // block rows that a thread takes at once

void check_places(const GradientOperands& batch, const GradientPlaces& places,
                  std::size_t gradients) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, "gradient at places: " + what);
  };
  if (places.block.rows < 1 || places.block.cols < 1) refuse("the block has no elements");
  if (batch.q_grad.cols != batch.s.cols)
    refuse(fmt::format("q_grad has {} columns and s has {}; both must have those of the batch",
                       batch.q_grad.cols, batch.s.cols));
  const std::int64_t rows = ceil_div(batch.q_grad.rows, places.block.rows);
  if (std::ssize(places.row_begin) != rows + 1 || places.row_begin.front() != 0 ||
      places.row_begin.back() != std::ssize(places.col) ||
      !std::is_sorted(places.row_begin.begin(), places.row_begin.end()))
    refuse(fmt::format("row_begin must ascend from 0 to the {} places, in {} positions",
                       places.col.size(), rows + 1));
  if (std::ssize(places.col) * places.block.area() != std::int64_t(gradients))
    refuse(fmt::format("the output has space for {} gradients; there are {} places of {}",
                       gradients, places.col.size(), places.block.area()));
}

void check_columns(const GradientOperands& batch, const GradientPlaces& places) {
  const std::int64_t cols = ceil_div(batch.s.rows, places.block.cols);
  for (std::size_t row = 0; row + 1 < places.row_begin.size(); ++row) {
    std::int64_t before = -1;
    for (auto i = places.row_begin[row]; i < places.row_begin[row + 1]; ++i) {
      const std::int32_t col = places.col[std::size_t(i)];
      if (col <= before || col >= cols)
        throw Error(ErrorCode::BadInput,
                    fmt::format("gradient at places: place {} of block row {} is in block column "
                                "{}; columns must ascend and be in 0..{}",
                                i, row, col, cols - 1));
      before = col;
    }
  }
}

// The search for places of one slice of S goes on where that of the slice before ended.
class PlaceRows {
 public:
  PlaceRows(const GradientPlaces& places, Range rows) : places_(places), rows_(rows) {}

  void start() {
    for (std::int64_t r = 0; r < rows_.size(); ++r)
      next_[std::size_t(r)] = places_.row_begin[std::size_t(rows_.begin + r)];
  }
  // Returns the next places of a row up to the first one that is not below `end`.
  Range below(std::int64_t row, std::int64_t end) {
    std::int64_t& next = next_[std::size_t(row - rows_.begin)];
    const std::int64_t first = next, last = places_.row_begin[std::size_t(row) + 1];
    while (next < last && places_.col[std::size_t(next)] < end) ++next;
    return {first, next};
  }

 private:
  const GradientPlaces& places_;
  Range rows_;
  std::array<std::int64_t, kRows> next_{};
};

// The operands in panels of the batch, and the slices of S that stay in a second-level cache.
class PlaceGradient {
 public:
  PlaceGradient(const GradientOperands& batch, const GradientPlaces& places, Executor& executor)
      : places_(places) {
    const std::int64_t x = round_up(batch.q_grad.rows, places.block.rows);
    const std::int64_t y = round_up(batch.s.rows, places.block.cols), z = batch.s.cols;
    const HostCells cells = gradient_cells(
        {{1, x, y, z}, places.block, std::ssize(places.col), DataType::Float}, read_host_cpu());
    slice_ = std::max<std::int64_t>(cells.y / places.block.cols, 1);
    HostColumns columns = gradient_columns(cells, z);
    s_.set_rows(y);
    s_.begin(batch.s, columns);
    columns.pack = false;
    q_grad_.set_rows(x);
    q_grad_.begin(batch.q_grad, columns);
    q_grad_.read({0, q_grad_.count()}, executor);
    s_.read({0, s_.count()}, executor);
    block_cols_ = y / places.block.cols;
  }

  void run(Range rows, std::span<float> gradients) const {
    PlaceRows next(places_, rows);
    for (std::int64_t panel = 0; panel < s_.count(); ++panel) {
      next.start();
      for (std::int64_t col = 0; col < block_cols_; col += slice_)
        for (std::int64_t row = rows.begin; row < rows.end; ++row)
          add(panel, row, next.below(row, std::min(col + slice_, block_cols_)), gradients);
    }
  }

 private:
  void add(std::int64_t panel, std::int64_t row, Range places, std::span<float> gradients) const {
    const BlockShape block = places_.block;
    const codelets::Operand q_grad =
        q_grad_.panel(panel, {row * block.rows, (row + 1) * block.rows});
    const codelets::Operand s = s_.panel(panel, {0, block_cols_ * block.cols});
    codelets::place_dots(
        {.block = block,
         .columns = places_.col.subspan(std::size_t(places.begin), std::size_t(places.size())),
         .q_grad = static_cast<const float*>(q_grad.data),
         .q_grad_stride = q_grad.row_stride,
         .s = static_cast<const float*>(s.data),
         .s_stride = s.row_stride,
         .z = q_grad.z,
         .gradients = gradients.data() + places.begin * block.area(),
         .replaces = panel == 0});
  }

  const GradientPlaces& places_;
  std::int64_t slice_ = 1, block_cols_ = 0;  // block columns
  internal::HostPanels<float> q_grad_{internal::HostPanels<float>::Kept::All};
  internal::HostPanels<float> s_{internal::HostPanels<float>::Kept::All};
};

}  // namespace

void gradient_at_places(const GradientOperands& batch, const GradientPlaces& places,
                        Executor& executor, std::span<float> gradients) {
  check_places(batch, places, gradients.size());
  check_columns(batch, places);
  if (batch.s.cols == 0) {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    return;
  }
  const PlaceGradient all(batch, places, executor);
  const std::int64_t rows = std::ssize(places.row_begin) - 1;
  std::atomic<std::int64_t> next = 0;
  executor.for_each(executor.threads(), [&](std::int64_t) {
    for (std::int64_t first = kRows * next++; first < rows; first = kRows * next++)
      all.run({first, std::min(first + kRows, rows)}, gradients);
  });
}

}  // namespace tessera::host
