#pragma once

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::arrays {

// Rows of a weight gradient, and the ledger of the pass that computed them.
struct RowGradient {
  RowSparse<float> gradient;  // [x][y] of the weights, zero outside their pattern
  device::Ledger ledger;
};

// Runs the GradW pass of a layer and returns the rows of the gradient that q_grad touches: the rows
// x of q_grad [x][z] that are not all zeros (a NaN counts as non-zero) and in which the layer has
// weights. s is [y][z]. The layer must have one group and element weights; other blocks and more
// groups are Error{InvalidArgument}. T and other errors are those of FullyConnected::grad_w. The
// cost is that of the pass, O(x * z) and O(touched rows * y). An embedding is a layer whose rows
// are words and whose q_grad has a one for each word of the batch; its lookup is grad_a of the
// same.
template <class T>
RowGradient grad_w_rows(runtime::FullyConnected& layer, MatrixView<const T> q_grad,
                        MatrixView<const T> s);

}  // namespace tessera::arrays
