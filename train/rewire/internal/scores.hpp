#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
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

// Throws Error{InvalidArgument} unless the operands of each batch have the shapes of these weights.
void check_batches(const sparse::Csr<float>& taken, std::span<const GradientBatch> batches,
                   std::string_view name);

// Returns the gradients of these places, summed over the batches: [places][block.rows][block.cols].
std::vector<float> gradients_at(BlockShape block, std::span<const GradientBatch> batches,
                                const PlaceList& places, Executor& executor);

// Returns places in row-major order as a list.
PlaceList list_of(std::int64_t block_rows, std::span<const sparse::BlockAt> places);

// Throws Error{BadInput}: the gradient at this place is not finite.
[[noreturn]] void refuse_score(sparse::BlockAt at, std::string_view name);

// Returns the scores of these places.
std::vector<float> scores_at(const sparse::Csr<float>& taken,
                             std::span<const GradientBatch> batches, const PlaceList& places,
                             Pool pool, Executor& executor);

}  // namespace tessera::train::internal
