#pragma once

#include <optional>
#include <string>

#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/weights.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The command line of PopLibs' program static_sparse_matmul: a sparse matrix [m][k] times a dense
// one [k][n] or, with --do-dense-sparse, a dense one [n][k] times a sparse one [k][m].
struct StaticMatMul {
  Arguments layer;  // [m] outputs, [k] inputs, batch n
  bool dense_sparse = false;
  std::string mask, mask_out;  // paths; empty: none
};

// Adds the options of the program to `app`, and checks them when it has parsed. `request` must live
// until then.
void add_static_matmul_options(CLI::App& app, StaticMatMul& request);

// Reads the mask, whose entries are blocks, and sets the sizes of the layer. Values are +1 or -1.
// Throws Error{BadInput} for a file that is no mask, and Error{InvalidArgument} if the command line
// gives other sizes.
Weights read_mask_weights(StaticMatMul& request);

// Returns the mask of the weights as the program writes it: rows and columns in blocks, then an
// entry for each block. It is that of the sparse operand, which --do-dense-sparse transposes.
std::string mask_text(const StaticMatMul& request, const Weights& weights);

}  // namespace tessera::tools
