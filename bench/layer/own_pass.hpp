#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Returns a view of operands whose rows are features; with the batch first, rows of `m` are
// samples.
template <class M>
auto in_order(M& m, bool batch_first) {
  return batch_first ? m.view().transposed() : m.view();
}

// Returns the columns that are compared. They are an odd number apart, so they reach every panel
// and every lane of a vector.
template <class T>
MatrixView<const T> some_columns(MatrixView<T> m) {
  const std::int64_t step = m.cols / 32 | 1;
  return {m.data, m.rows, (m.cols + step - 1) / step, m.row_stride, step * m.col_stride};
}

// Our layer with its weights, and the threads that it runs on.
struct OwnLayer {
  OwnLayer(const LayerCase& c, const sparse::Csr<float>& weights, host::HostOptions options = {});

  std::unique_ptr<Executor> executor;
  host::HostLayer layer;
};

// The pass of a case on our layer, with operands of its own in either order.
template <class T>
class OwnPass {
 public:
  // Compares the result with double precision; throws std::runtime_error if it is wrong.
  OwnPass(const LayerCase& c, const sparse::Csr<float>& weights, bool batch_first = false,
          host::HostOptions options = {});

  host::HostTimes run();
  const host::HostLayer& layer() const { return own_.layer; }
  MatrixView<const T> s() const { return in_order(s_, batch_first_); }
  MatrixView<const T> q() const { return in_order(q_, batch_first_); }

 private:
  void check(const LayerCase& c, sparse::Csr<float> weights);

  Pass pass_;
  bool batch_first_;
  OwnLayer own_;
  Matrix<T> s_, q_;  // [y][z] and [x][z], or the transposes
  std::vector<float> gradients_;
};

}  // namespace tessera::bench
