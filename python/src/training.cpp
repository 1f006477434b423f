// The passes of a training step of torch.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/python/src/layer.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

MatrixView<float> sized_matrix(const Tensor& tensor, const char* name, std::int64_t rows,
                               std::int64_t cols) {
  const auto view = tensor.matrix<float>();
  if (view.rows != rows || view.cols != cols)
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is {} x {}; this call needs {} x {}",
                                                        name, view.rows, view.cols, rows, cols));
  return view;
}

// The argument's elements, or none for None.
std::span<float> numbers_of(const std::optional<Tensor>& tensor, std::int64_t count) {
  if (!tensor) return {};
  return {tensor->values(count), std::size_t(count)};
}

// Makes the tensor unless the argument is None.
void read_if_given(std::optional<Tensor>& tensor, const py::object& object, const char* name,
                   Access access) {
  if (!object.is_none()) tensor.emplace(object, name, DataType::Float, access);
}

}  // namespace

// A chunk of rows and what it is made from stay in the near caches.
void Layer::copy_transposed(MatrixView<const float> from, MatrixView<float> to) {
  constexpr std::int64_t kChunk = 64;  // rows
  const auto copy_chunk = [&](std::int64_t chunk) {
    const Range rows{chunk * kChunk, std::min((chunk + 1) * kChunk, from.rows)};
    const MatrixView<const float> part = from.sub(rows, {0, from.cols});
    if (part.row_stride == 1)
      return codelets::transpose(part.data, part.col_stride, part.cols, part.rows,
                                 to.row(rows.begin), to.row_stride);
    for (std::int64_t r = 0; r < part.rows; ++r)
      for (std::int64_t c = 0; c < part.cols; ++c) to(rows.begin + r, c) = part(r, c);
  };
  const std::int64_t chunks = ceil_div(from.rows, kChunk);
  if (executor_->threads() > 1) return executor_->for_each(chunks, copy_chunk);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) copy_chunk(chunk);
}

void Layer::train_forward(const py::object& x, const py::object& s, const py::object& q,
                          const py::object& bias, const py::object& values) {
  std::optional<Tensor> from, added, taken;
  read_if_given(from, x, "x", Access::Read);
  read_if_given(added, bias, "bias", Access::Read);
  read_if_given(taken, values, "values", Access::Read);
  const Tensor operand(s, "s", DataType::Float, Access::Write);
  const Tensor result(q, "q", DataType::Float, Access::Write);
  const std::int64_t batch = operand.matrix<float>().cols;
  const auto columns = sized_matrix(operand, "s", cols(), batch);
  const auto out = sized_matrix(result, "q", batch, rows()).transposed();
  const host::ForwardOptions after = {.bias = numbers_of(added, rows())};
  const Turn turn(mutex_);
  if (taken) take_values(numbers_of(taken, std::ssize(weights().values)));
  if (from) copy_transposed(sized_matrix(*from, "x", batch, cols()).transposed(), columns);
  run<float>(Pass::Fwd, columns, out, after);
}

void Layer::train_backward(const py::object& dq, const py::object& dq_rows, const py::object& s,
                           const py::object& dx, const py::object& gradients) {
  std::optional<Tensor> from, input, weight;
  read_if_given(from, dq, "dq", Access::Read);
  read_if_given(input, dx, "dx", Access::Write);
  read_if_given(weight, gradients, "gradients", Access::Write);
  if (input) require(Pass::GradA, "backward");
  if (weight) require(Pass::GradW, "backward");
  const Tensor copy(dq_rows, "dq_rows", DataType::Float, Access::Write);
  const Tensor operand(s, "s", DataType::Float, Access::Read);
  const std::int64_t batch = operand.matrix<float>().cols;
  const auto columns = sized_matrix(operand, "s", cols(), batch);
  const auto left = sized_matrix(copy, "dq_rows", rows(), batch);
  const Turn turn(mutex_);
  const std::span<float> sums = numbers_of(weight, std::ssize(weights().values));
  if (from) copy_transposed(sized_matrix(*from, "dq", batch, rows()).transposed(), left);
  if (input)
    run<float>(Pass::GradA, left, sized_matrix(*input, "dx", batch, cols()).transposed(), {});
  if (!weight) return;
  if (layer_ && batch > 0)
    times_ = layer_->grad_w<float>(left, columns, sums);
  else
    std::fill(sums.begin(), sums.end(), 0.0f);
}

}  // namespace tessera::python
