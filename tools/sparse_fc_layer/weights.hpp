#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// The weights of the layer that the command line describes.
struct Weights {
  sparse::CheckedCsr<float> matrix;  // in whole blocks, with values rounded to the layer's type
  std::int64_t rows = 0, cols = 0;   // of the layer; the padded matrix may be larger
  std::string source;                // description of the origin, for reports
  int scale_exponent = 0;            // values were multiplied by 2^scale_exponent (fit_range)
};

// Reads the weights from a file or draws them from the seed. Throws the errors of load_weights and
// fit_range.
Weights make_weights(const Arguments& arguments);

// Cuts the blocks of the weights into blocks that have a static kernel, if they have none.
void use_kernel_blocks(Weights& weights);

// Returns the problem of the layer with the block and the density of the weights.
Problem make_problem(const Arguments& arguments, const Weights& weights);

// Returns the weights inside the layer: the shared matrix itself if no side is padded, else its
// elements inside the layer's size. O(values) if a side is padded.
sparse::CheckedCsr<float> inside(const Weights& weights);

// Returns the same part of a gradient that has the blocks and the size of the weights.
sparse::Csr<float> inside(sparse::Csr<float> gradient, const Weights& weights);

// Returns the share of block rows that have no block.
double share_without_blocks(const sparse::Csr<float>& matrix);

}  // namespace tessera::tools
