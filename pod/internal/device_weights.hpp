#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::pod::internal {

// The blocks of a matrix in a rectangle of block rows and block columns: for each block row the run
// of their positions in the matrix.
struct PartRuns {
  Range block_rows, block_cols;
  std::vector<Range> runs;  // [block rows]

  std::int64_t blocks() const;
};

// Finds the runs of a rectangle. O(block rows * log(blocks of a row)).
PartRuns part_runs(const sparse::Csr<float>& matrix, Range block_rows, Range block_cols);

// Returns the rectangle as a matrix of its own. O(its blocks).
sparse::CheckedCsr<float> part_of(const sparse::Csr<float>& matrix, const PartRuns& part);

// Copies the values of a part to their places in those of the whole matrix. `area` is that of a
// block. O(values of the part).
void copy_to_whole(const PartRuns& part, std::int64_t area, std::span<const float> values,
                   std::span<float> whole);

// The part of R that some devices have in common: those with the same g, x and y.
struct Cell {
  std::vector<PartRuns> runs;                    // [groups of the cell]
  std::vector<sparse::CheckedCsr<float>> parts;  // [groups of the cell]

  std::int64_t values() const;
};

// Cuts the matrices of all groups for a grid: [g][x][y] of its parts. O(values + block rows * parts
// of y).
std::vector<Cell> cut_weights(const Problem& problem, const Dims& parts,
                              std::span<const sparse::CheckedCsr<float>> weights);

}  // namespace tessera::pod::internal
