#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/planner/network.hpp"

namespace tessera::planner {

// A network as a file describes it: a JSON object with these keys; those marked * may be missing.
//   batch            columns of the inputs, 1 .. 2^31 - 1
//   data_type*       "half" (default), "float" or "bfloat16"
//   layers           a list of objects, the first layer first:
//     inputs, outputs  features, 1 .. 2^31 - 1
//     density          stored / all, in [0, 1]; not with "weights" or "dense"
//     dense*           true: all weights are stored and multiplied without buckets
//     recompute*       true: the result is computed again for the backward passes, not kept; not of
//                      the last layer nor of two in a row, and only with a loss
//     block_size*      side of the blocks of R, or a list of their rows and columns; 1 by default
//     bias*            true or false; true by default
//     activation*      "none" (default), "relu" or "gelu"
//     cap*             of relu, above 0 and in the range of float
//     operands*        the tiles that hold S and dQ before the passes: "as-left" (default),
//                      "at-home" or "even-spread"
//     weights*         file of the weights, beside the network's file; drawn at random if missing.
//                      Values of a pattern are drawn.
//   loss*            "softmax-cross-entropy" or "mean-squared-error": a training step; without it,
//                    the outputs are computed
//   optimiser*       only with a loss: an object with "rule" ("sgd", "momentum", "adagrad", "adam",
//                    "adamw", "nesterov" or "torch-sgd") and any of the numbers of this rule in
//                    codelets/optimiser.hpp, where "rate" is the learning rate (0.01 by default),
//                    and of "rescale", "clip" and "weight_decay"
struct NetworkFile {
  NetworkSpec spec;
  std::vector<std::string> weights;  // by layer; empty: drawn at random

  friend bool operator==(const NetworkFile&, const NetworkFile&) = default;
};

// Parses the text of a file; `where` names it in messages. Throws Error{BadInput}, which names the
// key, the value and the legal values, and for layers that do not follow each other.
NetworkFile parse_network(std::string_view text, std::string_view where);

// Returns the text of a file of this network, without files of weights, on one line.
std::string to_json(const NetworkSpec& spec);

}  // namespace tessera::planner
