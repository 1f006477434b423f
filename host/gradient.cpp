#include "tessera/host/internal/gradient.hpp"

#include <algorithm>
#include <atomic>
#include <functional>

#include "tessera/host/cells.hpp"
#include "tessera/host/internal/share_work.hpp"

namespace tessera::host::internal {
namespace {

using UnitRows = PlaceRows<std::int32_t, std::int64_t>;

Range blocks_of(const sparse::Csr<float>& pattern, Range rows) {
  return {pattern.row_begin[std::size_t(rows.begin)], pattern.row_begin[std::size_t(rows.end)]};
}

}  // namespace

// Threads that take the heaviest unit first finish at about the same time.
template <class T>
void HostGradient<T>::cut_units(const sparse::Csr<float>& pattern, std::int64_t rows) {
  units_.clear();
  for (std::int64_t first = 0; first < pattern.block_rows(); first += rows)
    units_.push_back({first, std::min(first + rows, pattern.block_rows())});
  if (executor_->threads() == 1) return;
  std::sort(units_.begin(), units_.end(), [&](Range a, Range b) {
    const std::int64_t of_a = blocks_of(pattern, a).size(), of_b = blocks_of(pattern, b).size();
    return of_a != of_b ? of_a > of_b : a.begin < b.begin;
  });
}

// Gradients of several panels are summed before they are added to those of the caller. Every thread
// may get any unit.
template <class T>
void HostGradient<T>::grow_scratch(const sparse::Csr<float>& pattern) {
  scratch_.resize(std::size_t(executor_->threads()));
  for (Scratch& scratch : scratch_) scratch.kernel_seconds = 0;
  if (accumulate_ == Accumulate::No || places_.panels() <= 1) return;
  std::int64_t most = 0;
  for (const Range rows : units_) most = std::max(most, blocks_of(pattern, rows).size());
  for (Scratch& scratch : scratch_) grow(scratch.sums, std::size_t(most * pattern.block.area()));
}

template <class T>
void HostGradient<T>::run_unit(const sparse::Csr<float>& pattern, Range rows,
                               std::span<float> gradients, Scratch& scratch) {
  const Range blocks = blocks_of(pattern, rows);
  const std::int64_t area = pattern.block.area();
  const auto own =
      gradients.subspan(std::size_t(blocks.begin * area), std::size_t(blocks.size() * area));
  const bool adds = accumulate_ == Accumulate::Yes;
  const bool in_place = !adds || places_.panels() == 1;
  const std::span<float> sums = in_place ? own : std::span(scratch.sums).first(own.size());
  {
    const PassClock::Part kernels(clock_, scratch.kernel_seconds);
    places_.run(UnitRows(pattern.row_begin, pattern.col, rows), sums, blocks.begin,
                adds && in_place);
  }
  if (!in_place) std::transform(sums.begin(), sums.end(), own.begin(), own.begin(), std::plus<>());
}

template <class T>
void HostGradient<T>::run_units(const sparse::Csr<float>& pattern, std::int64_t columns,
                                std::span<float> gradients) {
  std::atomic<std::size_t> next = 0;
  share_units(*executor_, std::ssize(gradients) * columns, [&](std::int64_t thread) {
    for (std::size_t unit = next++; unit < units_.size(); unit = next++)
      run_unit(pattern, units_[unit], gradients, scratch_[std::size_t(thread)]);
  });
}

template <class T>
bool HostGradient<T>::gradient(const sparse::Csr<float>& pattern, const DotOperands<T>& batch,
                               std::span<float> gradients, Accumulate accumulate,
                               PassControl& control, HostTimes& times) {
  clock_ = PassClock(std::ssize(gradients) * batch.s.cols);
  accumulate_ = accumulate;
  if (!control.begin("copies of operands")) return false;
  const HostProblem problem{
      {1, pattern.rows, pattern.cols, z_}, pattern.block, pattern.blocks(), data_type_of<T>()};
  const HostCells cells = gradient_cells(problem, cpu_);
  {
    const PassClock::Part copies(clock_, times.copy_seconds);
    places_.begin(problem, cells, batch, *executor_);
  }
  const bool runs = control.begin("products");
  cut_units(pattern, executor_->threads() == 1 ? kMostRows : cells.x / pattern.block.rows);
  grow_scratch(pattern);
  if (runs && batch.s.cols > 0)
    run_units(pattern, batch.s.cols, gradients);
  else if (runs && accumulate == Accumulate::No)
    std::fill(gradients.begin(), gradients.end(), 0.0f);
  clock_.add_to(times, scratch_);
  return runs;
}

template class HostGradient<float>;
template class HostGradient<Half>;
template class HostGradient<BFloat16>;

}  // namespace tessera::host::internal
