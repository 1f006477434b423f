#include "tessera/host/gradient_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/internal/place_gradient.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::host {
namespace {

using Places = internal::PlaceGradient<float, std::int32_t>;
using Rows = internal::PlaceRows<std::int32_t, std::int64_t>;

[[noreturn]] void refuse_places(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "gradient at places: " + what);
}

void check_operands(BlockShape block, std::span<const GradientOperands> batches) {
  if (block.rows < 1 || block.cols < 1) refuse_places("the block has no elements");
  for (const GradientOperands& batch : batches) {
    if (batch.q_grad.cols != batch.s.cols)
      refuse_places(
          fmt::format("q_grad has {} columns and s has {}; both must have those of the batch",
                      batch.q_grad.cols, batch.s.cols));
    if (batch.q_grad.rows != batches[0].q_grad.rows || batch.s.rows != batches[0].s.rows)
      refuse_places(
          fmt::format("the operands of a batch have {} and {} rows and those of the "
                      "first one {} and {}; they must be the same",
                      batch.q_grad.rows, batch.s.rows, batches[0].q_grad.rows, batches[0].s.rows));
  }
}

void check_lists(const GradientPlaces& places, std::int64_t rows,
                 std::span<const float> gradients) {
  if (std::ssize(places.row_begin) != rows + 1 || places.row_begin.front() != 0 ||
      places.row_begin.back() != std::ssize(places.col) ||
      !std::is_sorted(places.row_begin.begin(), places.row_begin.end()))
    refuse_places(fmt::format("row_begin must ascend from 0 to the {} places, in {} positions",
                              places.col.size(), rows + 1));
  if (std::ssize(places.col) * places.block.area() != std::ssize(gradients))
    refuse_places(fmt::format("the output has space for {} gradients; there are {} places of {}",
                              gradients.size(), places.col.size(), places.block.area()));
  check_memory(
      "gradient at places", footprint("the gradients", gradients),
      std::array{footprint("row_begin", places.row_begin), footprint("the columns", places.col)});
}

void check_columns(const GradientPlaces& places, std::int64_t first_row, std::int64_t cols) {
  for (std::size_t row = 0; row + 1 < places.row_begin.size(); ++row) {
    const auto begin = std::size_t(places.row_begin[row]);
    const auto own = places.col.subspan(begin, std::size_t(places.row_begin[row + 1]) - begin);
    if (sparse::is_legal_row(own, cols)) continue;
    std::int64_t before = -1;
    for (std::size_t i = 0; i < own.size(); before = own[i++])
      if (own[i] <= before || own[i] >= cols)
        throw Error(ErrorCode::BadInput,
                    fmt::format("gradient at places: place {} of block row {} is in block column "
                                "{}; columns must ascend and be in 0..{}",
                                begin + i, first_row + std::int64_t(row), own[i], cols - 1));
  }
}

}  // namespace

struct PlacesGradient::State {
  BlockShape block;
  std::int64_t rows = 0, cols = 0;   // block rows and columns of the matrix
  std::vector<Places> batches = {};  // those that have columns
};

PlacesGradient::PlacesGradient(BlockShape block, std::int64_t places,
                               std::span<const GradientOperands> batches, Executor& executor) {
  check_operands(block, batches);
  state_ = std::make_unique<State>(State{.block = block});
  if (batches.empty()) return;
  state_->rows = ceil_div(batches[0].q_grad.rows, block.rows);
  state_->cols = ceil_div(batches[0].s.rows, block.cols);
  for (const GradientOperands& batch : batches)
    if (batch.s.cols > 0)
      state_->batches.emplace_back(block, places,
                                   internal::DotOperands<float>{batch.q_grad, batch.s}, executor);
}

PlacesGradient::~PlacesGradient() = default;
PlacesGradient::PlacesGradient(PlacesGradient&&) noexcept = default;
PlacesGradient& PlacesGradient::operator=(PlacesGradient&&) noexcept = default;

void PlacesGradient::compute(std::int64_t first_row, std::span<const std::int64_t> row_begin,
                             std::span<const std::int32_t> col, std::span<float> gradients) const {
  const DefaultFloatMode mode;
  const GradientPlaces places{state_->block, row_begin, col};
  const std::int64_t rows = std::ssize(row_begin) - 1;
  if (rows < 0 || first_row < 0 || first_row + rows > state_->rows)
    refuse_places(
        fmt::format("block rows from {} on and {} positions were given; the matrix has "
                    "{} block rows",
                    first_row, row_begin.size(), state_->rows));
  check_lists(places, rows, gradients);
  check_columns(places, first_row, state_->cols);
  if (state_->batches.empty()) std::fill(gradients.begin(), gradients.end(), 0.0f);
  for (std::int64_t first = 0; first < rows; first += kRowsOfACall) {
    const Range part{first, std::min(first + kRowsOfACall, rows)};
    for (std::size_t b = 0; b < state_->batches.size(); ++b)
      state_->batches[b].run(Rows(row_begin, col, part), gradients, 0, b > 0, first_row);
  }
}

void gradient_at_places(const GradientOperands& batch, const GradientPlaces& places,
                        Executor& executor, std::span<float> gradients) {
  const DefaultFloatMode mode;
  check_operands(places.block, {&batch, 1});
  const std::int64_t rows = ceil_div(batch.q_grad.rows, places.block.rows);
  check_lists(places, rows, gradients);
  check_memory("gradient at places", footprint("the gradients", gradients),
               std::array{footprint("q_grad", batch.q_grad), footprint("s", batch.s)});
  check_columns(places, 0, ceil_div(batch.s.rows, places.block.cols));
  if (batch.s.cols == 0) {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    return;
  }
  Places all(Places::Kept::One);
  all.begin(places.block, std::ssize(places.col), {batch.q_grad, batch.s});
  for (std::int64_t panel = 0; panel < all.panels(); ++panel) {
    all.read({panel, panel + 1}, executor);
    const std::int64_t sums = std::ssize(gradients) * all.columns(panel);
    internal::for_each_rows(rows, sums, executor, [&](std::int64_t, Range part) {
      Rows own(places.row_begin, places.col, part);
      all.run_panel(panel, own, gradients, 0, panel > 0);
    });
  }
}

}  // namespace tessera::host
