#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// The weights of the layer that the command line asks for.
struct Weights {
  sparse::CheckedCsr<float> matrix;  // in whole blocks, values as the layer's type holds them
  std::int64_t rows = 0, cols = 0;   // of the layer; the matrix may reach beyond
  std::string source;
};

// Reads or draws them. Error{BadInput} as load_weights and fit_range.
Weights make_weights(const Arguments& arguments);

Problem make_problem(const Arguments& arguments, const Weights& weights);

// What of the weights belongs to the layer: the matrix itself, shared, when no side is padded, else
// its elements inside, O(values).
sparse::CheckedCsr<float> inside(const Weights& weights);
// The same of a gradient in the weights' blocks and size.
sparse::Csr<float> inside(sparse::Csr<float> gradient, const Weights& weights);

// Block rows that hold nothing / all.
double share_without_blocks(const sparse::Csr<float>& matrix);

}  // namespace tessera::tools
