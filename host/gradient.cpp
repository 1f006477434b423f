#include "tessera/host/internal/gradient.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/stopwatch.hpp"

namespace tessera::host::internal {

template <class T>
void HostGradient<T>::set_pattern(const sparse::Csr<float>& matrix) {
  problem_ = {{1, matrix.rows, matrix.cols, z_}, matrix.block, matrix.blocks(), data_type_of<T>()};
  cells_ = gradient_cells(problem_, cpu_);
  HostCells decoded = cells_;
  decoded.z = 1;  // words scaled by z would be too large for 16 bits, and twice as many to read
  matrix_.set(matrix, decoded, data_type_of<T>(), *executor_);
  const auto format =
      matrix.block.is_element() ? codelets::Format::Element : codelets::Format::Block;
  kernel_ = codelets::find_kernel({codelets::Operation::GradW, format, data_type_of<T>(),
                                   DataType::Float, matrix_.grid().word_bits})
                .run;
  q_grad_.set_rows(matrix.rows);
  s_.set_rows(matrix.cols);
  find_runs();
  scratch_.resize(std::size_t(executor_->threads()));
}

// Each row of a record is a run at most, so this capacity suffices for apply().
template <class T>
std::optional<partitioner::CellEdits> HostGradient<T>::prepare(
    std::span<const partitioner::BlockEdit> edits, std::vector<std::int32_t> shift,
    std::int64_t blocks) {
  HostProblem changed = problem_;
  changed.blocks = blocks;
  if (gradient_cells(changed, cpu_) != cells_) return std::nullopt;
  auto made =
      matrix_.prepare(edits, std::move(shift), partitioner::Numbering::RowByRow, 0, *executor_);
  if (made) runs_.reserve(std::size_t(made->most_rows()));
  return made;
}

template <class T>
void HostGradient<T>::apply(partitioner::CellEdits& edits) noexcept {
  matrix_.apply(edits, std::span<float>(), *executor_);
  find_runs();
}

template <class T>
void HostGradient<T>::find_runs() {
  const std::vector<std::int32_t>& source = matrix_.buckets().source;
  const std::int64_t units = matrix_.grid().splits.x;
  const auto slots = static_cast<std::int32_t>(std::ssize(source) / units);
  runs_.clear();
  runs_begin_.assign(1, 0);
  for (std::int64_t x = 0; x < units; ++x) {
    const std::int32_t* of_unit = source.data() + x * slots;
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      if (of_unit[slot] < 0) continue;
      const bool follows = slot > 0 && of_unit[slot - 1] + 1 == of_unit[slot] && of_unit[slot] > 0;
      if (follows)
        ++runs_.back().blocks;
      else
        runs_.push_back({slot, of_unit[slot], 1});
    }
    runs_begin_.push_back(runs_.size());
  }
}

template <class T>
auto HostGradient<T>::runs(std::int64_t x) const -> std::span<const Run> {
  const std::size_t begin = runs_begin_[std::size_t(x)];
  return {runs_.data() + begin, runs_begin_[std::size_t(x) + 1] - begin};
}

template <class T>
void HostGradient<T>::add_cells(std::int64_t x, float* sums, bool replaces) {
  const partitioner::Buckets& buckets = matrix_.buckets();
  const std::int64_t y_parts = matrix_.grid().splits.y;
  for (std::int64_t panel = 0; panel < s_.count(); ++panel)
    for (std::int64_t y = 0; y < y_parts; ++y) {
      const std::int64_t bucket = matrix_.grid().bucket_index(x, y, 0);
      if (matrix_.is_empty(bucket)) continue;
      kernel_({.meta = buckets.meta_words(bucket),
               .values = nullptr,
               .gradients = sums + y * buckets.values_per_bucket(),
               .sub_group = codelets::sub_group_id(x, y, y_parts),
               .block = matrix_.grid().block,
               .in = q_grad_.panel(panel, matrix_.x_range(x)),
               .in_s = s_.panel(panel, matrix_.y_range(y)),
               .out = {},
               .replaces = replaces && panel == 0});
    }
}

// Gradients of several panels are summed before they are added to those of the caller.
template <class T>
bool HostGradient<T>::is_in_place(std::int64_t x) const {
  const std::span<const Run> parts = runs(x);
  return parts.size() == 1 && parts.front().slot == 0 &&
         (accumulate_ == Accumulate::No || s_.count() == 1);
}

// Every thread may get any unit, so all have scratch memory if one unit needs it.
template <class T>
void HostGradient<T>::grow_scratch() {
  bool all_in_place = true;
  for (std::int64_t x = 0; x < matrix_.grid().splits.x; ++x) all_in_place &= is_in_place(x);
  if (all_in_place) return;
  const std::int64_t sums = matrix_.grid().splits.y * matrix_.buckets().values_per_bucket();
  for (Scratch& scratch : scratch_) grow(scratch.sums, std::size_t(sums));
}

template <class T>
void HostGradient<T>::run_unit(std::int64_t x, std::span<float> gradients, Scratch& scratch) {
  const std::int64_t area = matrix_.grid().block.area();
  const std::span<const Run> parts = runs(x);
  const bool adds = accumulate_ == Accumulate::Yes;
  const bool in_place = is_in_place(x);
  const Stopwatch kernels;
  if (in_place)
    add_cells(x, gradients.data() + parts.front().source * area, !adds);
  else
    add_cells(x, scratch.sums.data(), true);
  scratch.kernel_seconds += kernels.seconds();
  if (in_place) return;
  for (const Run& run : parts) {
    const float* const from = scratch.sums.data() + run.slot * area;
    float* const to = gradients.data() + run.source * area;
    if (adds)
      std::transform(from, from + run.blocks * area, to, to, std::plus<>());
    else
      std::copy_n(from, run.blocks * area, to);
  }
}

template <class T>
void HostGradient<T>::run_units(std::span<float> gradients) {
  const auto& order = matrix_.heaviest_first();
  std::atomic<std::int64_t> next = 0;
  share_units(*executor_, std::ssize(gradients) * s_.columns_of_all(), [&](std::int64_t thread) {
    for (std::int64_t unit = next++; unit < std::ssize(order); unit = next++)
      run_unit(order[std::size_t(unit)], gradients, scratch_[std::size_t(thread)]);
  });
}

template <class T>
bool HostGradient<T>::gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                               std::span<float> gradients, Accumulate accumulate,
                               PassControl& control, HostTimes& times) {
  const Stopwatch all;
  accumulate_ = accumulate;
  if (!control.begin("copies of operands")) return false;
  HostColumns columns = gradient_columns(cells_, s.cols);
  s_.begin(s, columns);
  columns.pack = false;
  q_grad_.begin(q_grad, columns);
  q_grad_.read({0, q_grad_.count()}, *executor_);
  s_.read({0, s_.count()}, *executor_);
  times.copy_seconds += all.seconds();
  const bool runs = control.begin("products");
  for (Scratch& scratch : scratch_) scratch.kernel_seconds = 0;
  grow_scratch();
  if (runs && s.cols > 0)
    run_units(gradients);
  else if (runs && accumulate == Accumulate::No)
    std::fill(gradients.begin(), gradients.end(), 0.0f);
  for (const Scratch& scratch : scratch_) times.kernel_seconds += scratch.kernel_seconds;
  times.seconds += all.seconds();
  return runs;
}

template class HostGradient<float>;
template class HostGradient<Half>;
template class HostGradient<BFloat16>;

}  // namespace tessera::host::internal
