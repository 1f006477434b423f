#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The part of a matrix in a rectangle of whole blocks: for each block row the run of the positions
// of its blocks in the matrix.
struct Part {
  Range block_rows, block_cols;
  std::vector<Range> runs;  // [block rows]

  std::int64_t blocks() const;
};

// Returns a range of elements, which begins and ends with whole blocks or with the end of a layer,
// as one of blocks.
Range in_blocks(Range elements, std::int64_t side);

// Finds the part in these rows and columns, as in_blocks takes them. O(block rows * log(blocks of a
// row)).
template <class T>
Part find_part(const Csr<T>& matrix, Range rows, Range cols);

// Returns a part, or the part in these rows and columns, or all columns of these rows, as a matrix
// of its own. The matrix must be legal, and is not checked. O(its blocks).
template <class T>
Csr<T> part_of(const Csr<T>& matrix, const Part& part);
template <class T>
Csr<T> part_of(const Csr<T>& matrix, Range rows, Range cols) {
  return part_of(matrix, find_part(matrix, rows, cols));
}
template <class T>
Csr<T> rows_of(const Csr<T>& matrix, Range rows) {
  return part_of(matrix, rows, {0, matrix.cols});
}

// Returns the values of a part. O(values of the part).
template <class T>
std::vector<T> values_of(const Csr<T>& matrix, const Part& part);

// Copies the values of a part to their places in those of the whole matrix. `area` is that of a
// block. O(values of the part).
void copy_to_whole(const Part& part, std::int64_t area, std::span<const float> values,
                   std::span<float> whole);

}  // namespace tessera::sparse
