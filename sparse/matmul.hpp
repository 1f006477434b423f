#pragma once

#include <span>
#include <vector>

#include "tessera/base/matmul.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns the weights R of a product's layer (layer_of), one for each group, from the sparse
// operands as they are stored: copies, or transposes. Throws Error{InvalidArgument} unless there is
// an operand for each group in the problem's block, whose sides are those of sparse_shape() rounded
// up to whole blocks, and Error{BadInput} if one is not canonical.
std::vector<Csr<float>> matmul_weights(const MatMulProblem& problem,
                                       std::span<const Csr<float>> operands);

}  // namespace tessera::sparse
