#include "tessera/pod/internal/pass_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/pod/device_split.hpp"

namespace tessera::pod::internal {

PassSteps::PassSteps(LayerState& state, Pass pass, const layer::PassOptions& options,
                     const DeviceOptions& target, PodLedger& ledger)
    : state_(state),
      pass_(pass),
      options_(options),
      target_(target),
      ledger_(ledger),
      devices_(chosen()) {
  ledger_ = {pass, {}, std::ssize(devices_)};
  const Dims parts = plan().grid.parts();
  needs_ = collectives_of(plan().problem, pass, parts, plan().serial_parts,
                          largest_share(plan().problem, parts, plan().serial_parts),
                          state.most_values());
  if (options_.self_check != nullptr) *options_.self_check = {};
}

std::vector<std::size_t> PassSteps::chosen() const {
  const std::int64_t all = std::ssize(state_.all), wanted = target_.devices_simulated;
  if (wanted < 0 || wanted > all)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("devices_simulated is {}; it must be in 0..{}, the devices in use, "
                            "and 0 means all of them",
                            wanted, all));
  if (wanted == 0) return state_.all;
  std::vector<std::size_t> some;
  for (std::int64_t i = 0; i < wanted; ++i) some.push_back(std::size_t(i * all / wanted));
  return some;
}

// Reports the next step. Returns false if the caller wants to stop.
bool PassSteps::begin(std::string_view name) {
  const bool stops = options_.stop.stop_requested();
  if (target_.split != nullptr ? target_.split->any(stops) : stops) return false;
  if (options_.progress) options_.progress({name, std::ssize(ledger_.steps)});
  return true;
}

Slice PassSteps::slice_of(Axis axis, std::size_t device, std::int64_t part) const {
  const Problem& problem = plan().problem;
  const Shares shares = shares_at(problem, plan().grid.parts(), state_.places()[device].at);
  const Range cols = share_of(shares.z.size(), 1, plan().serial_parts, part);
  const bool is_x = axis == Axis::X;
  return {shares.g,
          is_x ? shares.x : shares.y,
          {shares.z.begin + cols.begin, shares.z.begin + cols.end},
          is_x ? problem.size.x : problem.size.y};
}

Range PassSteps::Collective::part(std::int64_t size, std::size_t m) const {
  return schedule ? part_range(*schedule, size, std::int32_t(m)) : Range{0, size};
}

bool PassSteps::begin_collective(Operand operand, Collective& made) {
  const auto need = std::ranges::find(needs_, operand, &CollectiveNeed::operand);
  if (need == needs_.end()) {
    for (const std::size_t d : devices_) made.groups.push_back({d});
    return true;
  }
  if (!begin(collectives::to_string(need->operation))) return false;
  made.schedule = add_collective(*need);
  made.groups = groups_along(plan().grid, state_.places(), need->axis);
  return true;
}

// Returns the schedule of a collective and adds its step to the ledger, with the sizes of the real
// parts.
collectives::Schedule PassSteps::add_collective(const CollectiveNeed& need) {
  PricedCollective cost =
      priced(state_.prices, plan().grid, need, bytes_of(plan().problem.data_type));
  collectives::Schedule schedule =
      collectives::make_schedule(need.operation, cost.collective.levels);
  const double seconds = cost.collective.seconds;
  ledger_.steps.push_back({seconds, {}, std::move(cost.collective)});
  return schedule;
}

bool PassSteps::run_devices(std::int64_t part, const Run& run, const Results& results_of) {
  if (!begin("devices")) return false;
  std::vector<DeviceOutcome> outcomes(state_.places().size());
  const Range own = target_.split != nullptr ? target_.split->own(std::ssize(devices_))
                                             : Range{0, std::ssize(devices_)};
  const auto own_devices =
      std::span(devices_).subspan(std::size_t(own.begin), std::size_t(own.size()));
  state_.devices.for_each(own_devices, [&](std::size_t d, runtime::FullyConnected& layer) {
    run_device(d, run, layer, device_options(d, part, outcomes[d].checks), outcomes[d]);
  });
  if (target_.split != nullptr) take_others(own, outcomes, results_of);
  if (std::ranges::any_of(outcomes, &DeviceOutcome::stopped)) return false;
  add_device_step(part, outcomes);
  if (options_.self_check != nullptr)
    for (std::size_t i = 0; i < devices_.size(); ++i)
      add_checksums(outcomes[devices_[i]].checks, state_.places()[devices_[i]].device,
                    *options_.self_check, part == 0 && i == 0);
  return true;
}

void PassSteps::run_device(std::size_t device, const Run& run, runtime::FullyConnected& layer,
                           const runtime::TilePass& with, DeviceOutcome& outcome) const {
  const DevicePlace& place = state_.places()[device];
  device::Ledger cost;
  try {
    outcome.stopped = !run(device, layer, with, cost);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("device {} ({}): {}", place.device, to_string(place.at), error.what()));
  }
  outcome.figures = {place.device, cost.total(), cost.moved()};
}

// Exchanges the outcomes and the results of devices with the other processes.
void PassSteps::take_others(Range own, std::vector<DeviceOutcome>& outcomes,
                            const Results& results_of) {
  std::vector<std::vector<std::byte>> lists(devices_.size());
  const auto is_own = [&](std::size_t i) {
    return own.begin <= std::int64_t(i) && std::int64_t(i) < own.end;
  };
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (is_own(i)) lists[i] = pack(outcomes[devices_[i]], results_of(devices_[i]));
  target_.split->complete(lists);
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (!is_own(i)) outcomes[devices_[i]] = unpack(lists[i], results_of(devices_[i]));
}

runtime::TilePass PassSteps::device_options(std::size_t d, std::int64_t part,
                                            verify::Checksums& check) const {
  runtime::TilePass with;
  with.pass.stop = options_.stop;
  if (options_.self_check != nullptr) with.pass.self_check = &check;
  with.pass.repair = options_.repair;
  const bool struck = target_.fault && target_.fault->device == state_.places()[d].device;
  if (struck && part == 0) {
    with.tiles.fault = target_.fault->fault;
    with.tiles.struck = target_.struck;
  }
  return with;
}

void PassSteps::add_device_step(std::int64_t part, const std::vector<DeviceOutcome>& outcomes) {
  PodStep step;
  for (const std::size_t d : devices_) step.devices.push_back(outcomes[d].figures);
  Cycles cycles = step.slowest()->cycles;
  if (pass_ == Pass::GradW && part > 0) cycles += planned_add_cycles();
  step.seconds = double(cycles.value) / plan().pod.machine.clock_hz;
  ledger_.steps.push_back(std::move(step));
}

Cycles PassSteps::planned_add_cycles() const {
  const auto row = std::ranges::find(plan().passes, Pass::GradW, &PodPass::pass);
  return row == plan().passes.end() ? Cycles() : row->add_cycles;
}

void PassSteps::end() {
  const double seconds = barrier_seconds(plan().pod, plan().grid);
  if (seconds > 0) ledger_.steps.push_back({seconds, {}, {}});
}

}  // namespace tessera::pod::internal
