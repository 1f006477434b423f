#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/cut.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

// A rank's part of a layer in a run: its rows of the weights, and lists that have one number for
// each value, such as the state of an optimiser.
struct LayerState {
  RowCut outputs;           // of set_rows, or cut_evenly() of the matrix of set_weights
  sparse::Csr<float> rows;  // of this rank, in whole blocks
  std::vector<std::vector<float>> slots;

  friend bool operator==(const LayerState&, const LayerState&) = default;
};

// The state of a run: all layers of a network, and the step. Its checkpoint is one io::Archive,
// which does not depend on the number of ranks.
struct RunState {
  std::int64_t step = 0;
  std::vector<LayerState> layers;

  friend bool operator==(const RunState&, const RunState&) = default;
};

// Writes the state of a run to a file by the rules of write_file (base/file.hpp): the old file is
// whole until the new one is. Collective. All ranks give the same step, the same layers and cuts,
// and as many slots. Throws CannotWrite (base/write_file.hpp), and Error{InvalidArgument} for a
// state that contradicts itself or has numbers that are not finite. O(values); the first rank
// writes the file and holds its bytes three times meanwhile. For numbers that are not finite the
// first rank has that error, and the others have OtherRankFailed.
void write_checkpoint(Communicator& ranks, const std::string& path, const RunState& own);

// Reads a checkpoint, on any number of ranks. Each rank reads its own rows, by a cut with about as
// many blocks for each rank, and the first one the whole file to compare its checksum. Collective.
// Throws Error{BadInput}, which names the file and what is wrong, for a file that is missing, cut
// or changed, and for a matrix that is not legal.
RunState read_checkpoint(Communicator& ranks, const std::string& path);

}  // namespace tessera::distributed
