#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/train/rewire/grow.hpp"

namespace tessera::train::internal {

// Places in row-major order, as the pattern of a Csr.
struct PlaceList {
  std::vector<std::int64_t> row_begin;  // [block rows + 1]
  std::vector<std::int32_t> col;        // [places]
};

// Returns the columns of all batches together.
std::int64_t columns_of(std::span<const GradientBatch> batches);

// Returns the gradients of these places, summed over the batches: [places][block.rows][block.cols].
std::vector<float> gradients_at(BlockShape block, std::span<const GradientBatch> batches,
                                const PlaceList& places, Executor& executor);

// Returns places in row-major order as a list.
PlaceList list_of(std::int64_t block_rows, std::span<const sparse::BlockAt> places);

// Returns the scores of these places.
std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             BlockScore pool, Executor& executor);

}  // namespace tessera::train::internal
