#include "tessera/pod/internal/device_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/layer/prepared_update.hpp"

namespace tessera::pod::internal {

std::int64_t Cell::values() const {
  std::int64_t sum = 0;
  for (const sparse::CheckedCsr<float>& part : parts) sum += std::ssize(part->values);
  return sum;
}

std::vector<Cell> cut_weights(const Problem& problem, const Dims& parts,
                              std::span<const sparse::CheckedCsr<float>> weights) {
  std::vector<Cell> cells;
  for (std::int64_t g = 0; g < parts.g; ++g)
    for (std::int64_t x = 0; x < parts.x; ++x)
      for (std::int64_t y = 0; y < parts.y; ++y) {
        const Shares shares = shares_at(problem, parts, {g, x, y, 0});
        Cell& cell = cells.emplace_back();
        for (std::int64_t group = shares.g.begin; group < shares.g.end; ++group) {
          const sparse::Csr<float>& matrix = *weights[std::size_t(group)];
          cell.runs.push_back(sparse::find_part(matrix, shares.x, shares.y));
          cell.parts.push_back(sparse::checked(part_of(matrix, cell.runs.back())));
        }
      }
  return cells;
}

DeviceSet::DeviceSet(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order,
                     Executor& executor)
    : plan_(plan), prices_(plan_.pod), order_(order), executor_(executor) {
  check_cut(plan_);
  places_ = places_of(plan_.grid, plan_.pod);
  for (const DevicePlace& place : places_)
    shape_of_.push_back(std::size_t(&shape_at(plan_, place.at) - plan_.shapes.data()));
  const auto add_worker = [&](const DeviceShape& shape, std::unique_ptr<Executor> own) {
    Executor& runs_on = own ? *own : executor;
    auto layer = std::make_unique<runtime::FullyConnected>(
        device_problem(plan_.problem, shape.size), shape.plan, plan_.pod.machine, mode, runs_on);
    workers_.push_back({std::move(own), std::move(layer), {}});
  };
  switch (order_) {
    case DeviceOrder::OneAfterAnother:
      for (const DeviceShape& shape : plan_.shapes) add_worker(shape, nullptr);
      break;
    case DeviceOrder::SideBySide:
      for (const std::size_t shape : shape_of_) add_worker(plan_.shapes[shape], make_executor(1));
      break;
  }
}

std::size_t DeviceSet::cell_of(std::size_t device) const {
  const Dims parts = plan_.grid.parts(), &at = places_[device].at;
  return std::size_t((at.g * parts.x + at.x) * parts.y + at.y);
}

std::int64_t DeviceSet::most_values() const {
  std::int64_t most = 0;
  for (const Cell& cell : weights_.cells) most = std::max(most, cell.values());
  return most;
}

std::int64_t DeviceSet::first_value(std::int64_t group) const {
  std::int64_t sum = 0;
  for (std::int64_t g = 0; g < group; ++g)
    sum += std::ssize(weights_.groups[std::size_t(g)]->values);
  return sum;
}

std::size_t DeviceSet::worker_of(std::size_t device) const {
  return order_ == DeviceOrder::SideBySide ? device : shape_of_[device];
}

// Encodes a device's part of the weights, unless its layer has it.
std::optional<partitioner::Misfit> DeviceSet::load(std::size_t device, const CutWeights& weights) {
  Worker& worker = workers_[worker_of(device)];
  const std::size_t cell = cell_of(device);
  if (worker.number == weights.number && worker.cell == cell) return {};
  worker.number = 0;
  auto misfit = worker.layer->set_weights(weights.cells[cell].parts);
  if (!misfit) {
    worker.number = weights.number;
    worker.cell = cell;
  }
  return misfit;
}

// Every device must hold its part, also where one layer serves several.
std::optional<partitioner::Misfit> DeviceSet::encode(std::vector<sparse::CheckedCsr<float>> weights,
                                                     CutWeights& next) {
  next = {std::move(weights), {}, layer::new_number()};
  next.cells = cut_weights(plan_.problem, plan_.grid.parts(), next.groups);
  std::vector<std::size_t> all(places_.size());
  std::iota(all.begin(), all.end(), std::size_t(0));
  std::vector<std::optional<partitioner::Misfit>> misfits(all.size());
  visit(all, [&](std::size_t d) { misfits[d] = load(d, next); });
  for (std::size_t d = 0; d < misfits.size(); ++d)
    if (misfits[d]) {
      misfits[d]->message = fmt::format("device {} ({}): {}", places_[d].device,
                                        to_string(places_[d].at), misfits[d]->message);
      return misfits[d];
    }
  return {};
}

void DeviceSet::visit(std::span<const std::size_t> devices,
                      const std::function<void(std::size_t)>& run) {
  if (order_ == DeviceOrder::SideBySide) {
    executor_.for_each(std::ssize(devices), [&](std::int64_t i) { run(devices[std::size_t(i)]); });
    return;
  }
  // Devices of the same part of R run one after the other, so that it is encoded once.
  std::vector<std::size_t> sorted(devices.begin(), devices.end());
  std::ranges::stable_sort(sorted, {}, [&](std::size_t d) { return cell_of(d); });
  for (const std::size_t d : sorted) run(d);
}

void DeviceSet::for_each(std::span<const std::size_t> devices,
                         const std::function<void(std::size_t, runtime::FullyConnected&)>& run) {
  visit(devices, [&](std::size_t d) {
    const auto misfit = load(d, weights_);
    TESSERA_ASSERT(!misfit);  // encode() has tried it
    run(d, *workers_[worker_of(d)].layer);
  });
}

Bytes DeviceSet::high_water(std::size_t device) const {
  return workers_[worker_of(device)].layer->high_water();
}

}  // namespace tessera::pod::internal
