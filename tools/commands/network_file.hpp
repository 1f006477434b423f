#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/planner/network.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// A network as a file describes it: a JSON object with these keys; those marked * may be missing.
//   batch            columns of the inputs, 1 .. 2^31 - 1
//   data_type*       "half" (default), "float" or "bfloat16"
//   layers           a list of objects, the first layer first:
//     inputs, outputs  features, 1 .. 2^31 - 1
//     density          stored / all, in [0, 1]; not with "weights" or "dense"
//     dense*           true: all weights are stored and multiplied without buckets
//     recompute*       true: the result is computed again for the backward passes, not kept; not of
//                      the last layer nor of two in a row, and only with a loss
//     block_size*      side of the blocks of R; 1 by default
//     bias*            true or false; true by default
//     activation*      "none" (default), "relu" or "gelu"
//     cap*             of relu, above 0
//     operands*        the tiles that hold S and dQ before the passes: "as-left" (default),
//                      "at-home" or "even-spread"
//     weights*         file of the weights, beside the network's file; drawn at random if missing.
//                      Values of a pattern are drawn.
//   loss*            "softmax-cross-entropy" or "mean-squared-error": a training step; without it,
//                    the outputs are computed
//   optimiser*       an object with "rule" ("sgd", "momentum", "adagrad" or "adam") and any of
//                    "rate", "momentum", "beta1", "beta2", "epsilon"; only with a loss
struct NetworkFile {
  planner::NetworkSpec spec;
  std::vector<std::string> weights;  // by layer; empty: drawn at random

  friend bool operator==(const NetworkFile&, const NetworkFile&) = default;
};

// Parses the text of a file; `where` names it in messages. Throws Error{BadInput}, which names the
// key, the value and the legal values, and for layers that do not follow each other.
NetworkFile parse_network(std::string_view text, std::string_view where);

// Reads a file and the sizes of the weights that it names, which replace the densities. Paths are
// relative to the folder of the file. Throws Error{BadInput} for a file that cannot be read, for
// weights of another size than their layer, and for values that the network's type does not hold.
NetworkFile load_network(const std::string& path);

// Makes every second layer of a training step recompute, from the first one on, whatever the file
// says. Throws Error{InvalidArgument} without a loss or with a single layer.
void recompute_every_second(planner::NetworkSpec& spec);

// Returns the weights of a layer, counted from 0: those of its file, or drawn from the seed. Drawn
// values are uniform between -a and a, where a is the root of 3 / (weights of an output), so that
// outputs are about as large as inputs.
sparse::Csr<float> weights_of(const NetworkFile& file, std::int64_t layer, std::uint64_t seed);

// Returns true for work of all layers together, which lists show behind that of single layers.
inline bool serves_all(planner::NetworkWork work) {
  return work == planner::NetworkWork::UpdateBiases;
}

}  // namespace tessera::tools
