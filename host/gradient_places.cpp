#include "tessera/host/gradient_places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/internal/place_gradient.hpp"

namespace tessera::host {
namespace {

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

}  // namespace

void gradient_at_places(const GradientOperands& batch, const GradientPlaces& places,
                        Executor& executor, std::span<float> gradients) {
  check_places(batch, places, gradients.size());
  check_columns(batch, places);
  if (batch.s.cols == 0) {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    return;
  }
  using Rows = internal::PlaceRows<std::int32_t, std::int64_t>;
  const internal::PlaceGradient<float, std::int32_t> all(places.block, std::ssize(places.col),
                                                         {batch.q_grad, batch.s}, executor);
  const std::int64_t sums = std::ssize(gradients) * batch.s.cols;
  internal::for_each_rows(std::ssize(places.row_begin) - 1, sums, executor,
                          [&](std::int64_t, Range rows) {
                            all.run(Rows(places.row_begin, places.col, rows), gradients);
                          });
}

}  // namespace tessera::host
