#include "tessera/runtime/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/runtime/static_layer.hpp"

namespace tessera::runtime {
namespace {

void check_columns(std::int64_t first, std::int64_t second) {
  if (first != second)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the operands have {} and {} columns; all operands of a batch must "
                            "have the same number",
                            first, second));
}

void append(device::Ledger& all, device::Ledger run) {
  std::move(run.steps.begin(), run.steps.end(), std::back_inserter(all.steps));
}

// Calls run(in, out) for each part of the batch and returns the ledger of all runs.
template <class T, class Layer, class Run>
device::Ledger in_parts(Layer& layer, MatrixView<const T> in, MatrixView<T> out, Run&& run) {
  check_columns(in.cols, out.cols);
  device::Ledger all;
  for (const Range part : batch_parts(in.cols, layer.batch())) {
    Matrix<T> result(out.rows, layer.batch());
    append(all, run(batch_columns(in, part, layer.batch()), result));
    put_columns(result, part, out);
  }
  return all;
}

// Adds up the gradients of the parts of the batch.
template <class T, class Layer>
device::Ledger gradients_in_parts(Layer& layer, MatrixView<const T> q_grad, MatrixView<const T> s,
                                  std::span<sparse::Csr<float>> gradients) {
  check_columns(q_grad.cols, s.cols);
  device::Ledger all;
  std::vector<sparse::Csr<float>> of_part(gradients.size());
  for (const Range part : batch_parts(s.cols, layer.batch())) {
    const bool is_first = part.begin == 0;
    const std::span<sparse::Csr<float>> target = is_first ? gradients : std::span(of_part);
    append(all, layer.template grad_w<T>(batch_columns(q_grad, part, layer.batch()).view(),
                                         batch_columns(s, part, layer.batch()).view(), target));
    for (std::size_t g = 0; !is_first && g < gradients.size(); ++g)
      std::ranges::transform(gradients[g].values, of_part[g].values, gradients[g].values.begin(),
                             std::plus<>());
  }
  return all;
}

}  // namespace

std::vector<Range> batch_parts(std::int64_t batch, std::int64_t of_one_run) {
  std::vector<Range> parts;
  for (std::int64_t z = 0; z < batch; z += of_one_run)
    parts.push_back({z, std::min(z + of_one_run, batch)});
  return parts;
}

namespace {

template <class T, class Layer>
device::Ledger forward_in_parts(Layer& layer, MatrixView<const T> s, MatrixView<T> q) {
  return in_parts(layer, s, q, [&](const Matrix<T>& in, Matrix<T>& out) {
    return layer.template forward<T>(in.view(), out.view());
  });
}

template <class T, class Layer>
device::Ledger grad_a_in_parts(Layer& layer, MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  return in_parts(layer, q_grad, s_grad, [&](const Matrix<T>& in, Matrix<T>& out) {
    return layer.template grad_a<T>(in.view(), out.view());
  });
}

}  // namespace

template <class T>
device::Ledger forward_batch(FullyConnected& layer, MatrixView<const T> s, MatrixView<T> q) {
  return forward_in_parts(layer, s, q);
}

template <class T>
device::Ledger grad_a_batch(FullyConnected& layer, MatrixView<const T> q_grad,
                            MatrixView<T> s_grad) {
  return grad_a_in_parts(layer, q_grad, s_grad);
}

template <class T>
device::Ledger grad_w_batch(FullyConnected& layer, MatrixView<const T> q_grad,
                            MatrixView<const T> s, std::span<sparse::Csr<float>> gradients) {
  return gradients_in_parts(layer, q_grad, s, gradients);
}

template <class T>
device::Ledger forward_batch(StaticLayer& layer, MatrixView<const T> s, MatrixView<T> q) {
  return forward_in_parts(layer, s, q);
}

template <class T>
device::Ledger grad_a_batch(StaticLayer& layer, MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  return grad_a_in_parts(layer, q_grad, s_grad);
}

template <class T>
device::Ledger grad_w_batch(StaticLayer& layer, MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<sparse::Csr<float>> gradients) {
  return gradients_in_parts(layer, q_grad, s, gradients);
}

#define TESSERA_BATCHES(Layer, T)                                                        \
  template device::Ledger forward_batch(Layer&, MatrixView<const T>, MatrixView<T>);     \
  template device::Ledger grad_a_batch(Layer&, MatrixView<const T>, MatrixView<T>);      \
  template device::Ledger grad_w_batch(Layer&, MatrixView<const T>, MatrixView<const T>, \
                                       std::span<sparse::Csr<float>>);
TESSERA_BATCHES(FullyConnected, float)
TESSERA_BATCHES(FullyConnected, Half)
TESSERA_BATCHES(FullyConnected, BFloat16)
TESSERA_BATCHES(StaticLayer, float)
TESSERA_BATCHES(StaticLayer, Half)
TESSERA_BATCHES(StaticLayer, BFloat16)
#undef TESSERA_BATCHES

}  // namespace tessera::runtime
