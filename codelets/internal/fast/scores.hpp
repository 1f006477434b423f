#pragma once

#include <cstdint>

#include "tessera/codelets/best_places.hpp"

// The loops of add_best() and find_large() on vectors.
namespace tessera::codelets::internal {

// The rows of a block row, from one column on.
struct RowsOfBlocks {
  const float* first = nullptr;
  std::int64_t rows = 0, stride = 0;
};

// Writes what the columns first .. first + count - 1 of the rows of one block row add to scores, by
// the rule of the part: the sum or the largest of the magnitudes.
void column_scores(const GradientPart& part, std::int64_t block_row, std::int64_t first,
                   std::int64_t count, float* scores) noexcept;

// Returns the first position from `begin` on whose score is not below the threshold, `count` if
// there is none.
std::int64_t first_not_below(const float* scores, std::int64_t begin, std::int64_t count,
                             float threshold) noexcept;

// Does what find_large() does.
std::int64_t find_large_values(const float* values, std::int64_t count, float threshold,
                               std::uint32_t* positions) noexcept;

}  // namespace tessera::codelets::internal
