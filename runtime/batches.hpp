#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::runtime {

// Batches of another size than a layer was planned for, in as many runs as it takes: each run
// serves as many columns as the layer has, the last one is filled up with zeros.

// The columns that each run serves. batch >= 0, of_one_run >= 1.
std::vector<Range> batch_parts(std::int64_t batch, std::int64_t of_one_run);

// These columns, and zeros up to `width`.
template <class T>
Matrix<T> batch_columns(MatrixView<const T> whole, Range part, std::int64_t width) {
  Matrix<T> result(whole.rows, width);
  for (std::int64_t r = 0; r < whole.rows; ++r)
    for (std::int64_t c = 0; c < part.size(); ++c) result(r, c) = whole(r, part.begin + c);
  return result;
}

// The first columns of a run's result to their place.
template <class T>
void put_columns(const Matrix<T>& run, Range part, MatrixView<T> whole) {
  for (std::int64_t r = 0; r < whole.rows; ++r)
    for (std::int64_t c = 0; c < part.size(); ++c) whole(r, part.begin + c) = run(r, c);
}

// As the layer's own, for operands with any number of columns, the same in both; strided views of
// the caller's memory. The ledger is that of all runs, one after the other. Copies operands and
// results once. Other errors as the layer's; nothing is run for a batch of 0.
template <class T>
device::Ledger forward_batch(FullyConnected& layer, MatrixView<const T> s, MatrixView<T> q);
template <class T>
device::Ledger grad_a_batch(FullyConnected& layer, MatrixView<const T> q_grad,
                            MatrixView<T> s_grad);
// Gradients of the runs are added up in float, in the order of the batch.
template <class T>
device::Ledger grad_w_batch(FullyConnected& layer, MatrixView<const T> q_grad,
                            MatrixView<const T> s, std::span<sparse::Csr<float>> gradients);

}  // namespace tessera::runtime
