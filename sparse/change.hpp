#pragma once

#include <compare>
#include <cstdint>
#include <span>
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

// A block of a change, with its position among the stored blocks.
struct PlacedBlock {
  std::int32_t row = 0, col = 0;  // in blocks
  std::int32_t before = 0;  // position of a removed block, or of the first block that an added one
                            // comes before
  std::int32_t after = -1;  // position of an added block after the change; -1: it is removed

  bool is_added() const { return after >= 0; }
  friend bool operator==(const PlacedBlock&, const PlacedBlock&) = default;
};

// Returns the blocks of a change with their positions, ascending by row, then column. The matrix is
// canonical (check), which is not checked again. Throws the errors of with_change, and
// Error{LimitExceeded} beyond 2^31 - 1 blocks. O(changes * log(blocks of a row)); lists that do not
// ascend are sorted. Thread-safe.
template <class T>
std::vector<PlacedBlock> place_change(const Csr<T>& matrix, const PatternChange& change);

// Copies a list that has `width` numbers for each stored block into the order after a change, with
// 0 for added blocks. `after` has the numbers of all blocks that are then stored. O(numbers).
template <class T>
void carry_list(std::span<const PlacedBlock> change, std::int64_t width, std::span<const T> before,
                std::span<T> after);

// Returns, for each block that is stored after a change, its position before it, and -1 for an
// added block. `blocks` were stored before. For changes of many blocks whose lists have few numbers
// each: each list then costs one gather. O(blocks).
std::vector<std::int32_t> positions_before(std::span<const PlacedBlock> change,
                                           std::int64_t blocks);

// Does what the function above does, with the positions of positions_before.
template <class T>
void carry_list(std::span<const std::int32_t> positions, std::int64_t width,
                std::span<const T> before, std::span<T> after);

// Returns what with_change returns for a change that place_change of this matrix returned.
// O(blocks * area).
template <class T>
Csr<T> apply_change(const Csr<T>& matrix, std::span<const PlacedBlock> change);

// Returns what with_change returns for a canonical matrix of elements, which is not checked again,
// in one pass without the positions of place_change: for changes of many elements. Throws the
// errors of place_change. O(elements + rows); lists that do not ascend are sorted. Thread-safe.
template <class T>
Csr<T> merge_change(const Csr<T>& matrix, const PatternChange& change);

// Does what with_change does inside the lists of the matrix, which must have the capacity for what
// is added: nothing is allocated. O(numbers that move).
template <class T>
void change_in_place(Csr<T>& matrix, std::span<const PlacedBlock> change) noexcept;

// Returns the change that turns the pattern of `before` into that of `after`; both lists ascend by
// row, then column. Throws Error{InvalidArgument} unless the two agree in size and block.
// O(blocks).
template <class T>
PatternChange difference(const Csr<T>& before, const Csr<T>& after);
template <class T>
PatternChange difference(const CheckedCsr<T>& before, const CheckedCsr<T>& after);

}  // namespace tessera::sparse
