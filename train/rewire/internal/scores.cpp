#include "tessera/train/rewire/internal/scores.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

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

std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             Pool pool, Executor& executor) {
  const BlockShape block = taken.block;
  std::vector<float> sums(places.col.size() * std::size_t(block.area())), gradients;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (b == 1) gradients.resize(sums.size());
    std::vector<float>& own = b == 0 ? sums : gradients;
    host::gradient_at_places(batches[b], {block, places.row_begin, places.col}, executor, own);
    if (b > 0) std::transform(sums.begin(), sums.end(), own.begin(), sums.begin(), std::plus<>());
  }
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
