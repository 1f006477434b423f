#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/train/rewire/grow.hpp"

namespace tessera::train::internal {

// A score above this is infinite.
inline constexpr float kLargestScore = std::numeric_limits<float>::max();

// Returns the score of one block from the gradients of its elements, which are a view: rows and
// columns that an operand leaves out are not in it.
float score_of(MatrixView<const float> gradient, BlockShape block, Pool pool);

// Places in row-major order, as the pattern of a Csr.
struct PlaceList {
  std::vector<std::int64_t> row_begin;  // [block rows + 1]
  std::vector<std::int32_t> col;        // [places]
};

// Returns the scores of these places.
std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             Pool pool, Executor& executor);

}  // namespace tessera::train::internal
