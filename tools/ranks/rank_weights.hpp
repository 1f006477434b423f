#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/dims.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// The weights that one rank has of those that the command line describes: its rows, or all.
struct RankWeights {
  Weights layer;            // sizes, source and scale; with the matrices only if is_whole
  bool is_whole = false;    // several groups or replicas: every rank has all weights
  distributed::RowCut cut;  // else: of the rows, for all ranks
  sparse::Csr<float> rows;  // and of this rank, as Weights::matrix has them
  BlockShape block;
  std::int64_t blocks = 0;      // of all groups and ranks
  std::int64_t empty_rows = 0;  // block rows of all groups and ranks that have no block
  std::string note;             // why each rank has read all of a file; empty: it has not
};

// Reads this rank's rows of the file of weights and no others, or draws all weights from the seed
// and keeps its rows, or all of them for several groups or replicas. A file that is not stored row
// by row, one whose values are in a file of their own (--values), and one for a layer with replicas
// is read as a whole by every rank. The weights are those that make_weights returns in one process.
// Collective. Throws the errors of make_weights.
RankWeights make_rank_weights(const Arguments& arguments, distributed::Communicator& ranks);

}  // namespace tessera::tools
