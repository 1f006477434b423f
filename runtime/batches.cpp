#include "tessera/runtime/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::runtime {
namespace {

void check_columns(std::int64_t first, std::int64_t second) {
  if (first != second)
    throw_invalid(fmt::format(
        "the operands have {} and {} columns; all operands of a batch must have the same number",
        first, second));
}

void append(device::Ledger& all, device::Ledger run) {
  std::move(run.steps.begin(), run.steps.end(), std::back_inserter(all.steps));
}

// Calls run(in, out) for each part of the batch and returns the ledger of all runs.
template <class T, class Run>
device::Ledger in_parts(TileLayer& layer, MatrixView<const T> in, MatrixView<T> out, Run&& run) {
  check_columns(in.cols, out.cols);
  const std::int64_t width = layer.facts().problem.size.z;
  device::Ledger all;
  for (const Range part : batch_parts(in.cols, width)) {
    Matrix<T> result(out.rows, width);
    append(all, run(batch_columns(in, part, width), result));
    put_columns(result, part, out);
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

template <class T>
device::Ledger forward_batch(TileLayer& layer, MatrixView<const T> s, MatrixView<T> q) {
  return in_parts(layer, s, q, [&](const Matrix<T>& in, Matrix<T>& out) {
    return layer.forward<T>(in.view(), out.view());
  });
}

template <class T>
device::Ledger grad_a_batch(TileLayer& layer, MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  return in_parts(layer, q_grad, s_grad, [&](const Matrix<T>& in, Matrix<T>& out) {
    return layer.grad_a<T>(in.view(), out.view());
  });
}

template <class T>
device::Ledger grad_w_batch(TileLayer& layer, MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients) {
  check_columns(q_grad.cols, s.cols);
  const std::int64_t width = layer.facts().problem.size.z;
  device::Ledger all;
  std::vector<float> of_part(gradients.size());
  for (const Range part : batch_parts(s.cols, width)) {
    const bool is_first = part.begin == 0;
    append(all, layer.grad_w<T>(MatrixView<const T>(batch_columns(q_grad, part, width).view()),
                                batch_columns(s, part, width).view(),
                                is_first ? gradients : std::span(of_part)));
    if (!is_first) std::ranges::transform(gradients, of_part, gradients.begin(), std::plus<>());
  }
  return all;
}

#define TESSERA_BATCHES(T)                                                                   \
  template device::Ledger forward_batch(TileLayer&, MatrixView<const T>, MatrixView<T>);     \
  template device::Ledger grad_a_batch(TileLayer&, MatrixView<const T>, MatrixView<T>);      \
  template device::Ledger grad_w_batch(TileLayer&, MatrixView<const T>, MatrixView<const T>, \
                                       std::span<float>);
TESSERA_BATCHES(float)
TESSERA_BATCHES(Half)
TESSERA_BATCHES(BFloat16)
#undef TESSERA_BATCHES

}  // namespace tessera::runtime
