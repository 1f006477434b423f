#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// The rows of one rank of the weights that the command line describes.
struct RankWeights {
  Weights layer;            // sizes, source and scale of all weights, without their matrix
  distributed::RowCut cut;  // of the rows, for all ranks
  sparse::Csr<float> rows;  // of this rank, as Weights::matrix has them
  BlockShape block;
  std::int64_t blocks = 0;      // of all ranks
  std::int64_t empty_rows = 0;  // block rows of all ranks that have no block
  std::string note;             // why each rank has read all of a file; empty: it has not
};

// Reads this rank's rows of the file of weights and no others, or draws all weights from the seed
// and keeps its rows. A file that is not stored row by row, and one whose values are in a file of
// their own (--values), is read as a whole by every rank. The weights are those that make_weights
// returns in one process. Collective. Throws the errors of make_weights.
RankWeights make_rank_weights(const Arguments& arguments, distributed::Communicator& ranks);

// Returns the problem of the layer, as make_problem does in one process.
Problem make_problem(const Arguments& arguments, const RankWeights& weights);

}  // namespace tessera::tools
