#include "tessera/train/rewire/internal/scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/gradient_places.hpp"

namespace tessera::train::internal {

float score_of(MatrixView<const float> gradient, BlockShape block, Pool pool) {
  double sum = 0, most = 0;
  for (std::int64_t r = 0; r < gradient.rows; ++r)
    for (std::int64_t c = 0; c < gradient.cols; ++c) {
      const double size = std::abs(double(gradient(r, c)));
      sum += size;
      most = std::isnan(size) ? size : std::max(most, size);
    }
  switch (pool) {
    case Pool::Sum:
      return float(sum);
    case Pool::Max:
      return float(most);
    case Pool::Mean:
      return float(sum / double(block.area()));
  }
  return 0;
}

void check_batches(const sparse::Csr<float>& taken, std::span<const GradientBatch> batches,
                   std::string_view name) {
  for (const GradientBatch& b : batches)
    if (round_up(b.q_grad.rows, taken.block.rows) != taken.rows ||
        round_up(b.s.rows, taken.block.cols) != taken.cols || b.q_grad.cols != b.s.cols)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("growth of blocks: {} of {} x {}: the gradient of the output is {} x "
                              "{} and the input {} x {}; they must be {} x z and {} x z",
                              name, taken.rows, taken.cols, b.q_grad.rows, b.q_grad.cols, b.s.rows,
                              b.s.cols, taken.rows, taken.cols));
}

std::vector<float> gradients_at(BlockShape block, std::span<const GradientBatch> batches,
                                const PlaceList& places, Executor& executor) {
  std::vector<float> sums(places.col.size() * std::size_t(block.area())), gradients;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (b == 1) gradients.resize(sums.size());
    std::vector<float>& own = b == 0 ? sums : gradients;
    host::gradient_at_places(batches[b], {block, places.row_begin, places.col}, executor, own);
    if (b > 0) std::transform(sums.begin(), sums.end(), own.begin(), sums.begin(), std::plus<>());
  }
  return sums;
}

PlaceList list_of(std::int64_t block_rows, std::span<const sparse::BlockAt> places) {
  PlaceList list{std::vector<std::int64_t>(std::size_t(block_rows) + 1), {}};
  list.col.reserve(places.size());
  for (const sparse::BlockAt at : places) {
    ++list.row_begin[std::size_t(at.row) + 1];
    list.col.push_back(at.col);
  }
  std::partial_sum(list.row_begin.begin(), list.row_begin.end(), list.row_begin.begin());
  return list;
}

void refuse_score(sparse::BlockAt at, std::string_view name) {
  throw Error(ErrorCode::BadInput,
              fmt::format("growth of blocks: {}: the gradient in block row {}, block column {} is "
                          "not finite",
                          name, at.row, at.col));
}

std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             Pool pool, Executor& executor) {
  const BlockShape block = taken.block;
  std::vector<float> sums = gradients_at(block, batches, places, executor);
  if (block.is_element()) {
    for (float& sum : sums) sum = std::abs(sum);
    return sums;
  }
  std::vector<float> scores;
  scores.reserve(places.col.size());
  for (std::size_t i = 0; i < places.col.size(); ++i)
    scores.push_back(score_of(
        {sums.data() + std::int64_t(i) * block.area(), block.rows, block.cols, block.cols, 1},
        block, pool));
  return scores;
}

}  // namespace tessera::train::internal
