#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed::internal {

// The place of a rank in a product M S, whose matrix M is cut into runs of rows and parts of
// columns. Rows and columns are elements of the whole product.
struct Place {
  std::vector<int> of_part, of_run;  // the ranks with this part, by run; with this run, by part
  Range rows, columns;               // of M, of which the rank has the values
  RowCut operand, results;           // of S of the part, by run; of the results of the run
  std::vector<int> to, from;  // the ranks that have each piece of `results` as rows of Q or S; the
                              // ranks with the sums of this rank's rows of them, by part
};

// The cut of a matrix R and of its transpose over ranks. Runs and parts are neighbouring pieces of
// two cuts that have a piece for each rank.
struct Grid {
  RowCut rows, cols;  // of R
  int replicas = 1;   // parts of the columns

  int ranks() const { return rows.ranks(); }
  int runs() const { return ranks() / replicas; }

  // Return a rank's rows of Q, and of S: the operand and the results of its columns.
  Range outputs(int rank) const { return rows.of(rank); }
  Range inputs(int rank) const { return cols.of(input_piece(rank)); }

  // Return the place of a rank in M = R, and in M = transpose(R). Rank i * replicas + k has run i
  // of part k of R, so that its rows of Q are the piece of its number; rank k * runs + i has run i
  // of part k of the transpose, so that its rows of dQ are the same piece.
  Place forward(int rank) const;
  Place transposed(int rank) const;

 private:
  int input_piece(int rank) const { return rank % replicas * runs() + rank / replicas; }
  Place place(const RowCut& m_rows, const RowCut& m_cols, int run, int part) const;
};

// Returns the number of blocks of each block column.
std::vector<std::int64_t> column_counts(const sparse::Csr<float>& matrix);

// Returns the cut of one group over its ranks, with these runs of rows and about as many blocks in
// each run of columns; `counts` has the numbers of blocks of the block columns. Throws
// Error{InvalidArgument} if a part is empty.
Grid grid_of(const Problem& problem, int replicas, const RowCut& rows,
             std::span<const std::int64_t> counts);

}  // namespace tessera::distributed::internal
