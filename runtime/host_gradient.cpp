#include "tessera/runtime/internal/host_gradient.hpp"

#include <algorithm>
#include <atomic>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/runtime/internal/stopwatch.hpp"

namespace tessera::inline v0::runtime::internal {

template <class T>
void HostGradient<T>::set_pattern(const sparse::Csr<float>& matrix) {
  const HostProblem problem{
      {1, matrix.rows, matrix.cols, z_}, matrix.block, matrix.blocks(), data_type_of<T>()};
  cells_ = gradient_cells(problem, cpu_);
  HostCells decoded = cells_;
  decoded.z = 1;  // words scaled by z would be too large for 16 bits, and twice as many to read
  matrix_.set(matrix, decoded, data_type_of<T>(), *executor_);
  const auto format =
      matrix.block.is_element() ? codelets::Format::Element : codelets::Format::Block;
  kernel_ = codelets::find_kernel({codelets::Operation::GradW, format, data_type_of<T>(),
                                   DataType::Float, matrix_.grid().word_bits})
                .run;
  sums_.resize(std::size_t(matrix_.grid().buckets() * matrix_.buckets().values_per_bucket()));
  q_grad_ = HostPanels<T>(matrix.rows, z_, cells_.z, HostPanels<T>::Kept::All);
  s_ = HostPanels<T>(matrix.cols, z_, cells_.z, HostPanels<T>::Kept::All);
  kernel_seconds_.assign(std::size_t(executor_->threads()), 0);
}

template <class T>
void HostGradient<T>::run_unit(std::int64_t x) {
  const partitioner::Buckets& buckets = matrix_.buckets();
  const std::int64_t y_parts = matrix_.grid().splits.y, each = buckets.values_per_bucket();
  for (std::int64_t panel = 0; panel < s_.count(); ++panel)
    for (std::int64_t y = 0; y < y_parts; ++y) {
      const std::int64_t bucket = matrix_.grid().bucket_index(x, y, 0);
      if (matrix_.is_empty(bucket)) continue;
      kernel_({.meta = buckets.meta_words(bucket),
               .values = nullptr,
               .gradients = sums_.data() + bucket * each,
               .sub_group = codelets::sub_group_id(x, y, y_parts),
               .block = matrix_.grid().block,
               .in = q_grad_.panel(panel, matrix_.x_range(x)),
               .in_s = s_.panel(panel, matrix_.y_range(y)),
               .out = {},
               .replaces = panel == 0});
    }
}

template <class T>
void HostGradient<T>::write_unit(std::int64_t x, std::span<float> gradients) const {
  const partitioner::Buckets& buckets = matrix_.buckets();
  const std::int64_t area = buckets.grid.block.area();
  const std::int64_t slots = matrix_.grid().splits.y * buckets.grid.blocks;
  const std::int32_t* source = buckets.source.data() + x * slots;
  const float* sums = sums_.data() + x * slots * area;
  for (std::int64_t i = 0; i < slots; ++i)
    if (area == 1 && source[i] >= 0)
      gradients[std::size_t(source[i])] = sums[i];
    else if (source[i] >= 0)
      std::copy_n(sums + i * area, area, gradients.data() + source[i] * area);
}

template <class T>
HostTimes HostGradient<T>::run(MatrixView<const T> q_grad, MatrixView<const T> s,
                               std::span<float> gradients) {
  HostTimes times;
  const Stopwatch all;
  q_grad_.begin(q_grad, false);
  s_.begin(s, cells_.pack);
  q_grad_.read({0, q_grad_.count()}, *executor_);
  s_.read({0, s_.count()}, *executor_);
  times.copy_seconds = all.seconds();
  const auto& order = matrix_.heaviest_first();
  std::fill(kernel_seconds_.begin(), kernel_seconds_.end(), 0.0);
  std::atomic<std::int64_t> next = 0;
  executor_->for_each(std::ssize(kernel_seconds_), [&](std::int64_t thread) {
    for (std::int64_t unit = next++; unit < std::ssize(order); unit = next++) {
      const Stopwatch kernels;
      run_unit(order[std::size_t(unit)]);
      kernel_seconds_[std::size_t(thread)] += kernels.seconds();
      write_unit(order[std::size_t(unit)], gradients);
    }
  });
  for (const double seconds : kernel_seconds_) times.kernel_seconds += seconds;
  times.seconds = all.seconds();
  return times;
}

template class HostGradient<float>;
template class HostGradient<Half>;
template class HostGradient<BFloat16>;

}  // namespace tessera::inline v0::runtime::internal
