#pragma once

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::train {

// Rows of a weight gradient, and what working them out took.
struct RowGradient {
  arrays::RowSparse<float> gradient;  // [x][y] of the weights, zero outside their pattern
  device::Ledger ledger;
};

// GradW of a layer of one group, whose weights are elements, as the rows that q_grad touches: rows
// x of q_grad [x][z] with anything but zeros, NaN counted, and weights in them. s is [y][z]. T and
// errors as FullyConnected::grad_w; other blocks and more groups are Error{InvalidArgument}. Costs
// the pass, O(x * z) and O(touched rows * y). An embedding is a layer whose rows are words and
// whose q_grad holds a one for each word of the batch; its lookup is grad_a of the same.
template <class T>
RowGradient grad_w_rows(runtime::FullyConnected& layer, MatrixView<const T> q_grad,
                        MatrixView<const T> s);

}  // namespace tessera::train
