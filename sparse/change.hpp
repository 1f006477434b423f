#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// A place of the matrix in block coordinates.
struct BlockAt {
  std::int32_t row = 0, col = 0;

  friend bool operator==(const BlockAt&, const BlockAt&) = default;
  friend auto operator<=>(const BlockAt&, const BlockAt&) = default;
};

// How a pattern changes. In any order, none twice and none in both lists.
struct PatternChange {
  std::vector<BlockAt> removed, added;

  friend bool operator==(const PatternChange&, const PatternChange&) = default;
};

// The matrix with the change applied: removed blocks left out, added ones with values of 0.
// Error{InvalidArgument} that names the place when a removed block is not stored, an added one is
// stored already or lies outside, or a place is given twice. T is float or double.
// O(blocks * area + block rows + changes * log(changes)). Thread-safe.
// Example: removing (0, 1) and adding (1, 0) moves one block of a 2 x 2 matrix.
template <class T>
Csr<T> with_change(const Csr<T>& matrix, const PatternChange& change);

// The change that makes the pattern of `before` into that of `after`; both lists ascend by row,
// then column. The two must agree in size and block, else Error{InvalidArgument}. O(blocks).
template <class T>
PatternChange difference(const Csr<T>& before, const Csr<T>& after);

}  // namespace tessera::sparse
