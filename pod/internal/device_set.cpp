#include "tessera/pod/internal/device_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/internal/share_outcomes.hpp"

namespace tessera::pod::internal {
namespace {

void check_plan(const PodPlan& plan) {
  check_problem(plan.problem);
  device::check_pod(plan.pod, plan.pod.name);
  check_grid(plan.grid, plan.pod);
  if (!suits(plan.problem, plan.grid.parts()) || plan.serial_parts < 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the grid {} does not suit {}: a share would be empty",
                            to_string(plan.grid), to_string(plan.problem)));
}

}  // namespace

// A device of another rank needs a layer only for the memory of its shape.
DeviceSet::DeviceSet(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order,
                     Executor& executor, DeviceRanks ranks)
    : plan_(plan), order_(order), executor_(executor), ranks_(std::move(ranks)) {
  check_plan(plan_);
  places_ = places_of(plan_.grid, plan_.pod);
  assign_ranks();
  const auto add_worker = [&](const DeviceShape& shape, std::unique_ptr<Executor> own) {
    Executor& runs_on = own ? *own : executor;
    auto layer = std::make_unique<runtime::FullyConnected>(
        device_problem(plan_.problem, shape.size), shape.plan, plan_.pod.machine, mode, runs_on);
    workers_.push_back({std::move(own), std::move(layer), {}});
  };
  std::vector<std::optional<std::size_t>> worker_of_shape(plan_.shapes.size());
  for (std::size_t d = 0; d < places_.size(); ++d) {
    const DeviceShape& shape = shape_at(plan_, places_[d].at);
    auto& known = worker_of_shape[std::size_t(&shape - plan_.shapes.data())];
    const bool has_own = order_ == DeviceOrder::SideBySide && is_mine(d);
    if (has_own || !known) {
      known = workers_.size();
      add_worker(shape, has_own ? make_executor(1) : nullptr);
    }
    worker_of_.push_back(*known);
  }
}

// Devices with the same part of R are neighbours, so that most of them share a rank.
void DeviceSet::assign_ranks() {
  if (ranks_.size < 1 || ranks_.rank < 0 || ranks_.rank >= ranks_.size ||
      (ranks_.size > 1 && !ranks_.gather))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} of {} cannot run devices: ranks are numbered from 0, and "
                            "several of them need a function that gathers",
                            ranks_.rank, ranks_.size));
  std::vector<std::size_t> sorted(places_.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t(0));
  std::ranges::stable_sort(sorted, {}, [&](std::size_t d) { return cell_of(d); });
  rank_of_.resize(places_.size());
  for (int rank = 0; rank < ranks_.size; ++rank) {
    const Range own = share_of(std::ssize(sorted), 1, ranks_.size, rank);
    for (std::int64_t i = own.begin; i < own.end; ++i) rank_of_[sorted[std::size_t(i)]] = rank;
  }
}

std::size_t DeviceSet::cell_of(std::size_t device) const {
  const Dims parts = plan_.grid.parts(), &at = places_[device].at;
  return std::size_t((at.g * parts.x + at.x) * parts.y + at.y);
}

// Gives the layer of a device its part of R, unless it has it.
std::optional<partitioner::Misfit> DeviceSet::load(std::size_t device,
                                                   const std::vector<Cell>& cells) {
  Worker& worker = workers_[worker_of_[device]];
  const std::size_t cell = cell_of(device);
  if (worker.loaded == cell) return {};
  worker.loaded.reset();
  auto misfit = worker.layer->set_weights(cells[cell].parts);
  if (!misfit) worker.loaded = cell;
  return misfit;
}

// Every device must hold its part, also where one layer serves several. The first misfit of all
// ranks is found again on the others, which tells them the rest.
std::optional<PodMisfit> DeviceSet::encode(const std::vector<Cell>& cells) {
  std::vector<std::size_t> all(places_.size());
  std::iota(all.begin(), all.end(), std::size_t(0));
  std::vector<char> fits(all.size(), 1);
  visit(all, [&](std::size_t d) { fits[d] = !load(d, cells); });
  const auto first = std::ranges::find(fits, 0);
  std::optional<std::size_t> wrong;
  if (first != fits.end()) wrong = std::size_t(first - fits.begin());
  wrong = least_of(ranks_, wrong);
  if (!wrong) return {};
  const partitioner::Misfit misfit = load(*wrong, cells).value();
  const auto& [device, at] = places_[*wrong];
  return PodMisfit{
      device, at, fmt::format("device {} ({}): {}", device, to_string(at), misfit.message), misfit};
}

std::optional<PodMisfit> DeviceSet::set_weights(
    std::span<const sparse::CheckedCsr<float>> weights) {
  check_weights(plan_.problem, weights);
  std::vector<Cell> cells = cut_weights(plan_.problem, plan_.grid.parts(), weights);
  const auto forget = [&] {
    for (Worker& worker : workers_) worker.loaded.reset();
  };
  forget();
  // If not every device takes its new part, all of them take their old one again when they run.
  try {
    std::optional<PodMisfit> misfit = encode(cells);
    if (misfit) {
      forget();
      return misfit;
    }
  } catch (...) {
    forget();
    throw;
  }
  cells_ = std::move(cells);
  return {};
}

void DeviceSet::visit(std::span<const std::size_t> devices,
                      const std::function<void(std::size_t)>& run) {
  std::vector<std::size_t> mine;
  std::ranges::copy_if(devices, std::back_inserter(mine),
                       [&](std::size_t d) { return is_mine(d); });
  if (order_ == DeviceOrder::SideBySide) {
    executor_.for_each(std::ssize(mine), [&](std::int64_t i) { run(mine[std::size_t(i)]); });
    return;
  }
  // Devices of the same part of R run one after the other, so that it is encoded once.
  std::ranges::stable_sort(mine, {}, [&](std::size_t d) { return cell_of(d); });
  for (const std::size_t d : mine) run(d);
}

void DeviceSet::for_each(std::span<const std::size_t> devices,
                         const std::function<void(std::size_t, runtime::FullyConnected&)>& run) {
  visit(devices, [&](std::size_t d) {
    const auto misfit = load(d, cells_);
    TESSERA_ASSERT(!misfit);  // encode() has tried it
    run(d, *workers_[worker_of_[d]].layer);
  });
}

Bytes DeviceSet::high_water(std::size_t device) const {
  return workers_[worker_of_[device]].layer->high_water();
}

}  // namespace tessera::pod::internal
