#include "tessera/train/rewire/internal/scores.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tessera/host/best_places.hpp"
#include "tessera/host/gradient_places.hpp"

namespace tessera::train::internal {

std::int64_t columns_of(std::span<const GradientBatch> batches) {
  return std::accumulate(batches.begin(), batches.end(), std::int64_t{0},
                         [](std::int64_t sum, const GradientBatch& b) { return sum + b.s.cols; });
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

std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             BlockScore pool, Executor& executor) {
  const BlockShape block = taken.block;
  std::vector<float> sums = gradients_at(block, batches, places, executor);
  if (block.is_element()) {
    for (float& sum : sums) sum = std::abs(sum);
    return sums;
  }
  std::vector<float> scores;
  scores.reserve(places.col.size());
  for (std::size_t i = 0; i < places.col.size(); ++i)
    scores.push_back(host::score_of(
        {sums.data() + std::int64_t(i) * block.area(), block.rows, block.cols, block.cols, 1},
        block, pool));
  return scores;
}

}  // namespace tessera::train::internal
