#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

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
Part find_part(const sparse::Csr<float>& matrix, Range rows, Range cols);

// Returns a part, or the part in these rows and columns, or all columns of these rows, as a matrix
// of its own. O(its blocks).
sparse::Csr<float> part_of(const sparse::Csr<float>& matrix, const Part& part);
sparse::Csr<float> part_of(const sparse::Csr<float>& matrix, Range rows, Range cols);
sparse::Csr<float> rows_of(const sparse::Csr<float>& matrix, Range rows);

// Copies the values of a part to their places in those of the whole matrix. `area` is that of a
// block. O(values of the part).
void copy_to_whole(const Part& part, std::int64_t area, std::span<const float> values,
                   std::span<float> whole);

}  // namespace tessera::distributed
