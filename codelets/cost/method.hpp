#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"

namespace tessera::codelets {

// The method by which a tile does its share of one pass. GradA has two methods per format: with
// separate meta-information (ElementGradA) or with the forward meta-information read transposed
// (the two Transpose methods).
enum class Method {
  ElementFwd,
  ElementGradA,
  ElementTranspose,
  ElementGradW,
  BlockFwd,        // every worker does all blocks for some of the batch
  BlockTranspose,  // the same with transposed blocks
  BlockGradW,      // every worker does some of the blocks for all of the batch
  BlockGradWAmp    // all workers on one block, operands rearranged first
};

// Returns "ElementFwd" and so on.
std::string to_string(Method method);

// One kernel of one machine, in the terms of the cycle formulas.
struct MatMulKernel {
  Method method = Method::ElementFwd;
  DataType data_type = DataType::Float;
  DataType partials_type = DataType::Float;
  BlockShape block;             // of the sparse operand as this method reads it
  std::int64_t workers = 6;     // of a tile
  std::int64_t conv_units = 8;  // multiply-accumulate units for this pair of types

  // True: charges what PopSparse's estimators (PopLibs 3.4) say. They count the fixed part of a
  // group of columns once a row, and price the pair that is left over in float z as z/2 pairs.
  // False: charges what PopSparse's kernels do, which run that fixed part for every group.
  bool poplibs_estimate = false;
};

}  // namespace tessera::codelets
