#include "tessera/train/rewire/internal/gradient_panel.hpp"

#include <algorithm>

namespace tessera::train::internal {
namespace {

std::int64_t width_of(std::span<const GradientBatch> batches) {
  std::int64_t width = 0;
  for (const GradientBatch& batch : batches) width += batch.s.cols;
  return width;
}

}  // namespace

GradientPanel::GradientPanel(Size size, std::span<const GradientBatch> batches)
    : size_(size),
      batches_(batches),
      columns_of_s_(std::size_t(width_of(batches) * size.cols)),
      panel_(std::size_t(size.rows * size.cols)) {}

void GradientPanel::set_columns(std::int64_t begin, std::int64_t count) {
  columns_ = count;
  float* to = columns_of_s_.data();
  for (const GradientBatch& batch : batches_) {
    const std::int64_t stored = std::min(count, batch.s.rows - begin);
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t z = 0; z < batch.s.cols; ++z)
        to[z * size_.cols + c] = c < stored ? batch.s(begin + c, z) : 0;
    to += batch.s.cols * size_.cols;
  }
}

std::span<const float> GradientPanel::compute(std::int64_t begin, std::int64_t count) {
  std::fill(panel_.begin(), panel_.end(), 0.0f);
  const float* columns = columns_of_s_.data();
  for (const GradientBatch& batch : batches_) {
    add_rows(batch, columns, begin, count);
    columns += batch.s.cols * size_.cols;
  }
  return panel_;
}

void GradientPanel::add_rows(const GradientBatch& batch, const float* columns, std::int64_t begin,
                             std::int64_t count) {
  for (std::int64_t r = 0; r < std::min(count, batch.q_grad.rows - begin); ++r) {
    float* const row = panel_.data() + r * size_.cols;
    for (std::int64_t z = 0; z < batch.s.cols; ++z) {
      const float q = batch.q_grad(begin + r, z);
      const float* const s = columns + z * size_.cols;
      if (q == 0) continue;  // ReLU makes many of them
      for (std::int64_t c = 0; c < columns_; ++c) row[c] += q * s[c];
    }
  }
}

}  // namespace tessera::train::internal
