#include "tessera/host/internal/gradient.hpp"

#include <algorithm>
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

template <class T>
void HostGradient<T>::run_units(const sparse::Csr<float>& pattern, std::int64_t panel,
                                std::span<float> sums, bool adds) {
  const std::int64_t area = pattern.block.area();
  SharedParts units(std::ssize(units_));
  share_units(*executor_, std::ssize(sums) * places_.columns(panel), [&](std::int64_t thread) {
    const PassClock::Part kernels(clock_, threads_[std::size_t(thread)].kernel_seconds);
    while (const auto unit = units.next()) {
      const Range own = units_[std::size_t(unit->begin)], blocks = blocks_of(pattern, own);
      UnitRows rows(pattern.row_begin, pattern.col, own);
      places_.run_panel(
          panel, rows,
          sums.subspan(std::size_t(blocks.begin * area), std::size_t(blocks.size() * area)),
          blocks.begin, adds);
    }
  });
}

template <class T>
bool HostGradient<T>::run_panels(const sparse::Csr<float>& pattern, std::span<float> sums,
                                 bool adds, PassControl& control, HostTimes& times) {
  for (std::int64_t panel = 0; panel < places_.panels(); ++panel) {
    if (!control.begin("panel of columns")) return false;
    {
      const PassClock::Part copies(clock_, times.copy_seconds);
      places_.read({panel, panel + 1}, *executor_);
    }
    run_units(pattern, panel, sums, adds || panel > 0);
  }
  return true;
}

// Gradients of several panels are summed before they are added to those of the caller.
template <class T>
bool HostGradient<T>::gradient(const sparse::Csr<float>& pattern, const DotOperands<T>& batch,
                               std::span<float> gradients, Accumulate accumulate,
                               PassControl& control, HostTimes& times) {
  clock_ = PassClock(std::ssize(gradients) * batch.s.cols);
  const HostProblem problem{
      {1, pattern.rows, pattern.cols, z_}, pattern.block, pattern.blocks(), data_type_of<T>()};
  const HostCells cells = gradient_cells(problem, cpu_);
  cut_units(pattern, executor_->threads() == 1 ? kMostRows : cells.x / pattern.block.rows);
  threads_.assign(std::size_t(executor_->threads()), {});
  places_.begin(problem, cells, batch);
  const bool adds = accumulate == Accumulate::Yes;
  const bool in_place = !adds || places_.panels() <= 1;
  if (!in_place) grow(sums_, gradients.size());
  const std::span<float> sums = in_place ? gradients : std::span(sums_).first(gradients.size());
  const bool runs = run_panels(pattern, sums, adds && in_place, control, times);
  if (batch.s.cols == 0 && !adds) std::fill(gradients.begin(), gradients.end(), 0.0f);
  if (runs && !in_place)
    std::transform(sums.begin(), sums.end(), gradients.begin(), gradients.begin(), std::plus<>());
  clock_.add_to(times, threads_);
  return runs;
}

template class HostGradient<float>;
template class HostGradient<Half>;
template class HostGradient<BFloat16>;

}  // namespace tessera::host::internal
