#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/row_cut.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed {

// A rank's part of a layer in a run: its rows of the weights, and lists that have one number for
// each value, such as the state of an optimiser.
struct LayerState {
  RowCut outputs;
  sparse::Csr<float> rows;  // of this rank, in whole blocks
  std::vector<std::vector<float>> slots;

  friend bool operator==(const LayerState&, const LayerState&) = default;
};

// The state of a run: all layers of a network, and the step.
struct RunState {
  std::int64_t step = 0;
  std::vector<LayerState> layers;

  friend bool operator==(const RunState&, const RunState&) = default;
};

// A checkpoint is a folder with one file a rank and a manifest, manifest.safetensors, which has the
// layers, the positions of all their rows and the checksums of the files; all are io::Archives.
// Files have a new name in every checkpoint, and the manifest is written last, beside the old one,
// and renamed; then the files of the old checkpoint are removed. So the folder holds a whole
// checkpoint whenever the run is killed: the last one or, until the rename, the one before.

// Writes the state of a run to a folder, which is created if it is missing. Collective. All ranks
// give the same step, the same layers and cuts, and as many slots. Throws CannotWrite
// (base/write_file.hpp), and Error{InvalidArgument} for a state that contradicts itself or has
// numbers that are not finite; the old checkpoint is then still whole. O(values of the rank + block
// rows of the layers); holds the bytes of the rank's file twice.
void write_checkpoint(Communicator& ranks, const std::string& folder, RunState own);

// Reads a checkpoint, on any number of ranks. Each rank gets its rows by `outputs`, one cut for
// each layer, or by a cut with about as many blocks for each rank. Every file is read once to
// compare its checksum, each by one rank. Collective. Throws Error{BadInput}, which names the file
// and what is wrong, for a folder without a manifest, files that are missing, cut or changed, and a
// matrix that is not legal.
RunState read_checkpoint(Communicator& ranks, const std::string& folder,
                         std::span<const RowCut> outputs = {});

}  // namespace tessera::distributed
