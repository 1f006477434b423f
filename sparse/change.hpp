#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The place of a block in block coordinates.
struct BlockAt {
  std::int32_t row = 0, col = 0;

  friend bool operator==(const BlockAt&, const BlockAt&) = default;
  friend auto operator<=>(const BlockAt&, const BlockAt&) = default;
};

// A change of a pattern: the blocks to remove and the blocks to add. The places may be in any
// order; none may be given twice or in both lists.
struct PatternChange {
  std::vector<BlockAt> removed, added;

  friend bool operator==(const PatternChange&, const PatternChange&) = default;
};

// Returns the matrix with the change applied: without the removed blocks, and with the added ones,
// whose values are 0. Throws Error{InvalidArgument}, which names the place, if a removed block is
// not stored, if an added block is stored already or outside the matrix, or if a place is given
// twice. T is float or double.
// O(blocks * area + block rows + changes * log(changes)). Thread-safe.
// Example: removing (0, 1) and adding (1, 0) moves one block of a 2 x 2 matrix.
template <class T>
Csr<T> with_change(const Csr<T>& matrix, const PatternChange& change);
template <class T>
CheckedCsr<T> with_change(const CheckedCsr<T>& matrix, const PatternChange& change);

// Returns the change that turns the pattern of `before` into that of `after`; both lists ascend by
// row, then column. Throws Error{InvalidArgument} unless the two agree in size and block.
// O(blocks).
template <class T>
PatternChange difference(const Csr<T>& before, const Csr<T>& after);
template <class T>
PatternChange difference(const CheckedCsr<T>& before, const CheckedCsr<T>& after);

}  // namespace tessera::sparse
