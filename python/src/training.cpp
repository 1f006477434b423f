// The passes of a training step of torch.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/row_ends.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/python/src/layer.hpp"

namespace tessera::python {
namespace {

// Tensor::data_ptr() of torch, 0 for none.
float* memory_at(std::uintptr_t address) {
  return reinterpret_cast<float*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// A matrix of rows [rows][cols] of torch.
MatrixView<float> rows_at(const TorchMatrix& m, std::int64_t rows, std::int64_t cols) {
  return {memory_at(m.address), rows, cols, m.row_stride, m.col_stride};
}

// The result [batch][features] of a pass, as rows of features.
MatrixView<float> result_rows(std::uintptr_t address, std::int64_t features, std::int64_t batch) {
  return MatrixView<float>{memory_at(address), batch, features, features, 1}.transposed();
}

// The memory of a large tensor of torch comes from the system anew in each step. Its page faults,
// one for each 4 KiB, take longer than the pass that writes the tensor. Zen 5, virtual, 4096 x 1024
// at 1/64, 4,096 samples: a forward pass takes 37 ms, and 15 with large pages.
void want_large_pages_of(std::uintptr_t address, std::int64_t rows, std::int64_t cols) {
  constexpr std::size_t kLarge = 8 << 20;  // bytes
  const std::size_t bytes = std::size_t(rows * cols) * sizeof(float);
  if (address != 0 && bytes >= kLarge) want_large_pages(memory_at(address), bytes);
}

bool is_copied(const TorchMatrix& from, const TorchMatrix& to) {
  return to.address != 0 && to.address != from.address;
}

// The sums of rows whose columns are contiguous, with the bits of codelets::sum_in_lanes.
void sum_across(MatrixView<const float> rows, float* sums) {
  constexpr std::int64_t kLanes = 16, kTogether = 256;  // rows
  std::array<float, kLanes * kTogether> lanes;
  for (std::int64_t first = 0; first < rows.rows; first += kTogether) {
    const std::int64_t count = std::min(kTogether, rows.rows - first);
    lanes.fill(0);
    for (std::int64_t column = 0; column < rows.cols; ++column) {
      const float* const from = &rows(first, column);
      float* const to = lanes.data() + column % kLanes * kTogether;
      for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
    }
    std::fill_n(sums + first, count, 0.0f);
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      for (std::int64_t i = 0; i < count; ++i)
        sums[first + i] += lanes[std::size_t(lane * kTogether + i)];
  }
}

void sum_rows(MatrixView<const float> rows, float* sums) {
  if (rows.row_stride == 1 && rows.col_stride > 1) return sum_across(rows, sums);
  for (std::int64_t row = 0; row < rows.rows; ++row)
    sums[row] = codelets::sum_in_lanes(rows.row(row), rows.cols);
}

// The gradient in front of a ReLU whose result is q; that of NaN passes, as in torch.
float where_positive(float q, float gradient) { return q <= 0 ? 0.0f : gradient; }

// Writes the gradients of a sample, which are `step` apart. They are read even where they are not
// used, so that no branch depends on signs.
void copy_sample(const float* gradients, std::int64_t step, std::span<const float> q, float* to) {
  const std::int64_t count = std::ssize(q);
  for (std::int64_t i = 0; step == 1 && i < count; ++i) to[i] = where_positive(q[i], gradients[i]);
  for (std::int64_t i = 0; step != 1 && i < count; ++i)
    to[i] = where_positive(q[i], gradients[i * step]);
}

}  // namespace

// A chunk of rows and what it is made from stay in the near caches.
void Layer::copy_transposed(const TorchMatrix& from, MatrixView<float> to) {
  constexpr std::int64_t kChunk = 64;  // rows
  const MatrixView<const float> given{memory_at(from.address), to.rows, to.cols, from.col_stride,
                                      from.row_stride};
  if (to.cols == 0) return;
  const auto copy_chunk = [&](std::int64_t chunk) {
    const Range rows{chunk * kChunk, std::min((chunk + 1) * kChunk, to.rows)};
    const MatrixView<const float> part = given.sub(rows, {0, to.cols});
    if (part.row_stride == 1)
      return codelets::transpose(part.data, part.col_stride, part.cols, part.rows,
                                 to.row(rows.begin), to.row_stride);
    for (std::int64_t r = 0; r < part.rows; ++r)
      for (std::int64_t c = 0; c < part.cols; ++c) to(rows.begin + r, c) = part(r, c);
  };
  const std::int64_t chunks = ceil_div(to.rows, kChunk);
  if (executor_->threads() > 1) return executor_->for_each(chunks, copy_chunk);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) copy_chunk(chunk);
}

// As copy_transposed, with 0 where q [batch][outputs] is 0 or less. `to` has the batch first, or
// rows of outputs: a square is then masked and transposed while it is in the nearest cache.
void Layer::copy_where_positive(const TorchMatrix& from, const float* q, MatrixView<float> to) {
  if (to.row_stride == 1 && to.cols > 1) return copy_samples_where_positive(from, q, to);
  constexpr std::int64_t kSide = 64;
  const std::int64_t outputs = to.rows, batch = to.cols, step = from.col_stride;
  const auto* const given = memory_at(from.address);
  const auto copy_rows = [&](std::int64_t chunk) {
    const std::int64_t first = chunk * kSide, count = std::min(kSide, outputs - first);
    std::array<float, kSide * kSide> masked;
    for (std::int64_t begin = 0; begin < batch; begin += kSide) {
      const std::int64_t rows = std::min(kSide, batch - begin);
      for (std::int64_t b = 0; b < rows; ++b) {
        const float* const kept = q + (begin + b) * outputs + first;
        copy_sample(given + (begin + b) * from.row_stride + first * step, step,
                    {kept, std::size_t(count)}, masked.data() + b * kSide);
      }
      codelets::transpose(masked.data(), kSide, rows, count, to.row(first) + begin, to.row_stride);
    }
  };
  const std::int64_t chunks = ceil_div(outputs, kSide);
  if (executor_->threads() > 1) return executor_->for_each(chunks, copy_rows);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) copy_rows(chunk);
}

void Layer::copy_samples_where_positive(const TorchMatrix& from, const float* q,
                                        MatrixView<float> to) {
  const auto copy = [&](std::int64_t b) {
    copy_sample(memory_at(from.address) + b * from.row_stride, from.col_stride,
                {q + b * to.rows, std::size_t(to.rows)}, &to(0, b));
  };
  if (executor_->threads() > 1) return executor_->for_each(to.cols, copy);
  for (std::int64_t b = 0; b < to.cols; ++b) copy(b);
}

void Layer::require_values(std::int64_t count) const {
  if (count != std::ssize(weights().values))
    throw Error(ErrorCode::InvalidArgument, fmt::format("there are {} values; this layer has {}",
                                                        count, weights().values.size()));
}

void Layer::take(const StampedValues& values) {
  if (values.stamp == 0 || values.stamp == stamp_) return;
  require_values(values.count);
  take_values({memory_at(values.address), std::size_t(values.count)});
  stamp_ = values.stamp;
}

void Layer::train_forward(const TrainForward& step) {
  const MatrixView<const float> x{memory_at(step.x.address), cols(), step.batch, step.x.col_stride,
                                  step.x.row_stride};
  layer::PassOptions after;
  if (step.bias != 0) after.bias = {memory_at(step.bias), std::size_t(rows())};
  after.activation = step.activation;
  if (is_copied(step.x, step.s)) want_large_pages_of(step.s.address, cols(), step.batch);
  want_large_pages_of(step.q, rows(), step.batch);
  const Turn turn(mutex_);
  take(step.values);
  if (is_copied(step.x, step.s)) copy_transposed(step.x, rows_at(step.s, cols(), step.batch));
  run<float>(Pass::Fwd, step.s.address != 0 ? rows_at(step.s, cols(), step.batch) : x,
             result_rows(step.q, rows(), step.batch), after);
}

void Layer::train_backward(const TrainBackward& step) {
  if (step.dx != 0) require(Pass::GradA, "backward");
  if (step.gradients != 0) require(Pass::GradW, "backward");
  const MatrixView<const float> s = rows_at(step.s, cols(), step.batch);
  const MatrixView<float> dq = rows_at(step.dq_rows, rows(), step.batch);
  if (is_copied(step.dq, step.dq_rows))
    want_large_pages_of(step.dq_rows.address, rows(), step.batch);
  want_large_pages_of(step.dx, cols(), step.batch);
  const Turn turn(mutex_);
  if (step.q != 0)
    copy_where_positive(step.dq, memory_at(step.q), dq);
  else if (is_copied(step.dq, step.dq_rows))
    copy_transposed(step.dq, dq);
  if (step.bias_gradients != 0) sum_rows(dq, memory_at(step.bias_gradients));
  if (step.dx != 0) take(step.values);  // the gradient of the values does not read them
  if (step.dx != 0) run<float>(Pass::GradA, dq, result_rows(step.dx, cols(), step.batch), {});
  if (step.gradients == 0) return;
  require_values(step.values.count);
  const std::span<float> gradients(memory_at(step.gradients), std::size_t(step.values.count));
  if (layer_ && step.batch > 0)
    times_ = layer_->grad_w<float>(dq, s, gradients);
  else
    std::fill(gradients.begin(), gradients.end(), 0.0f);
}

}  // namespace tessera::python
