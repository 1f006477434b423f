#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/layer.hpp"

namespace tessera::runtime {

// Passes over batches of another size than a layer was planned for. The batch is computed in
// several runs; each run takes as many columns as the layer has, and the last one is filled up with
// zeros.

// Returns the columns that each run takes. Needs batch >= 0 and of_one_run >= 1.
std::vector<Range> batch_parts(std::int64_t batch, std::int64_t of_one_run);

// Returns a copy of columns `part`, with zero columns up to `width`.
template <class T>
Matrix<T> batch_columns(MatrixView<const T> whole, Range part, std::int64_t width) {
  Matrix<T> result(whole.rows, width);
  for (std::int64_t r = 0; r < whole.rows; ++r)
    for (std::int64_t c = 0; c < part.size(); ++c) result(r, c) = whole(r, part.begin + c);
  return result;
}

// Copies the first columns of a run's result to columns `part` of `whole`.
template <class T>
void put_columns(const Matrix<T>& run, Range part, MatrixView<T> whole) {
  for (std::int64_t r = 0; r < whole.rows; ++r)
    for (std::int64_t c = 0; c < part.size(); ++c) whole(r, part.begin + c) = run(r, c);
}

// A layer on a modelled machine: FullyConnected or StaticLayer.
using TileLayer = layer::LayerOf<device::Ledger>;

// Runs forward on operands with any number of columns. Both are strided views of the caller's
// memory and must have the same number of columns, else Error{InvalidArgument}; other errors are
// those of the layer. Returns the ledger of all runs, one after the other; it is empty for a batch
// of 0. Operands and results are copied once.
template <class T>
device::Ledger forward_batch(TileLayer& layer, MatrixView<const T> s, MatrixView<T> q);

}  // namespace tessera::runtime
