#include "tessera/arrays/optim/row_gradient.hpp"

#include <utility>
#include <vector>

#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/base/half.hpp"

namespace tessera::arrays {
namespace {

template <class T>
bool is_touched(MatrixView<const T> q_grad, std::int64_t row) {
  for (std::int64_t z = 0; z < q_grad.cols; ++z)
    if (static_cast<float>(q_grad(row, z)) != 0.0f) return true;
  return false;
}

// Returns `all` with the rows emptied that q_grad does not touch.
template <class T>
sparse::Csr<float> touched_rows(const sparse::Csr<float>& all, MatrixView<const T> q_grad) {
  sparse::Csr<float> kept{all.rows, all.cols, all.block, {0}, {}, {}};
  for (std::int64_t r = 0; r < all.rows; ++r) {
    if (is_touched(q_grad, r)) {
      const std::int64_t first = all.row_begin[r], last = all.row_begin[r + 1];
      kept.col.insert(kept.col.end(), all.col.begin() + first, all.col.begin() + last);
      kept.values.insert(kept.values.end(), all.values.begin() + first, all.values.begin() + last);
    }
    kept.row_begin.push_back(kept.blocks());
  }
  return kept;
}

}  // namespace

template <class T>
RowGradient grad_w_rows(runtime::FullyConnected& layer, MatrixView<const T> q_grad,
                        MatrixView<const T> s) {
  sparse::Csr<float> all;
  device::Ledger ledger = layer.grad_w<T>(q_grad, s, all);
  if (!all.block.is_element()) return {to_row_sparse(all), std::move(ledger)};
  return {to_row_sparse(touched_rows(all, q_grad)), std::move(ledger)};
}

template RowGradient grad_w_rows(runtime::FullyConnected&, MatrixView<const float>,
                                 MatrixView<const float>);
template RowGradient grad_w_rows(runtime::FullyConnected&, MatrixView<const Half>,
                                 MatrixView<const Half>);

}  // namespace tessera::arrays
