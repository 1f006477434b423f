#include "tessera/pod/internal/pass_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/row_cut.hpp"

namespace tessera::pod::internal {

std::vector<Members> groups_along(const PodGrid& grid, const std::vector<DevicePlace>& places,
                                  Axis axis) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, Members> groups;
  for (std::size_t d = 0; d < places.size(); ++d) {
    Dims others = places[d].at;
    const std::int64_t member = along(others, axis);
    (axis == Axis::X ? others.x : axis == Axis::Y ? others.y : others.z) = 0;
    Members& group = groups[{others.g, others.x, others.y, others.z}];
    group.resize(std::size_t(along(grid.parts(), axis)));
    group[std::size_t(member)] = d;
  }
  std::vector<Members> result;
  for (auto& [ignored, group] : groups) result.push_back(std::move(group));
  return result;
}

Range part_range(const collectives::Schedule& schedule, std::int64_t size, std::int32_t member) {
  const std::int32_t first = member * schedule.pieces_per_member;
  const std::int32_t last = first + schedule.pieces_per_member - 1;
  return {share_of(size, 1, schedule.pieces(), first).begin,
          share_of(size, 1, schedule.pieces(), last).end};
}

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
  const std::int64_t all = std::ssize(state_.places()), wanted = target_.devices_simulated;
  if (wanted < 0 || wanted > all)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("devices_simulated is {}; it must be in 0..{}, the devices in use, "
                            "and 0 means all of them",
                            wanted, all));
  const std::int64_t count = wanted == 0 ? all : wanted;
  std::vector<std::size_t> some;
  for (std::int64_t i = 0; i < count; ++i) some.push_back(std::size_t(i * all / count));
  return some;
}

// Reports the next step. Returns false if the caller wants to stop.
bool PassSteps::begin(std::string_view name) {
  const bool stops = options_.stop.stop_requested();
  if (target_.ranks != nullptr ? any_rank(*target_.ranks, "wishes to stop", stops) : stops)
    return false;
  if (options_.progress) options_.progress({name, std::ssize(ledger_.steps)});
  return true;
}

Slice PassSteps::slice_of(Operand operand, std::size_t device, std::int64_t part) const {
  const Problem& problem = plan().problem;
  const Shares shares = shares_at(problem, plan().grid.parts(), state_.places()[device].at);
  const Range cols = share_of(shares.z.size(), 1, plan().serial_parts, part);
  const bool is_x = rows_axis(operand) == Axis::X;
  return {shares.g,
          is_x ? shares.x : shares.y,
          {shares.z.begin + cols.begin, shares.z.begin + cols.end},
          is_x ? problem.size.x : problem.size.y};
}

Range PassSteps::Collective::part(std::int64_t size, std::size_t m) const {
  return schedule ? part_range(*schedule, size, std::int32_t(m)) : Range{0, size};
}

bool PassSteps::begin_collective(Operand operand, Collective& made) {
  const auto need = std::ranges::find_if(
      needs_, [=](const CollectiveNeed& n) { return n.collective.operand == operand; });
  if (need == needs_.end()) {
    for (const std::size_t d : devices_) made.groups.push_back({d});
    return true;
  }
  PlannedCollective real = need->collective;  // with the sizes of the real parts
  if (!begin(collectives::to_string(real.operation))) return false;
  add_prices(state_.prices, plan().grid, plan().problem.data_type, real);
  made.schedule = collectives::make_schedule(real.operation, real.levels);
  made.groups = groups_along(plan().grid, state_.places(), real.axis);
  ledger_.steps.push_back({real.seconds, {}, std::move(real)});
  return true;
}

bool PassSteps::run_devices(std::int64_t part, const Run& run, const Results& results_of) {
  if (!begin("devices")) return false;
  std::vector<DeviceOutcome> outcomes(state_.places().size());
  const int rank = target_.ranks != nullptr ? target_.ranks->rank() : 0;
  state_.devices.for_each(devices_of(rank), [&](std::size_t d, runtime::FullyConnected& layer) {
    run_device(d, run, layer, device_options(d, part, outcomes[d].checks), outcomes[d]);
  });
  if (target_.ranks != nullptr) take_others(outcomes, results_of);
  if (std::ranges::any_of(outcomes, &DeviceOutcome::stopped)) return false;
  add_device_step(part, outcomes);
  if (options_.self_check != nullptr)
    for (const std::size_t d : devices_)
      verify::add_part(outcomes[d].checks, *options_.self_check,
                       fmt::format("device {}", state_.places()[d].device));
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

// Returns the devices that a rank runs.
std::span<const std::size_t> PassSteps::devices_of(int rank) const {
  const int ranks = target_.ranks != nullptr ? target_.ranks->size() : 1;
  const Range own = distributed::even_part(std::ssize(devices_), ranks, rank);
  return std::span(devices_).subspan(std::size_t(own.begin), std::size_t(own.size()));
}

// Exchanges the outcomes and the results of devices with the other ranks.
void PassSteps::take_others(std::vector<DeviceOutcome>& outcomes, const Results& results_of) {
  distributed::Communicator& ranks = *target_.ranks;
  std::vector<std::byte> own;
  for (const std::size_t d : devices_of(ranks.rank())) pack(outcomes[d], results_of(d), own);
  const auto counts = gather(ranks, "numbers of devices", std::ssize(devices_));
  if (std::ranges::count(counts, counts[0]) != std::ssize(counts))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("ranks run {} devices of a pod; give all ranks the same layer",
                            fmt::join(counts, ", ")));
  const auto lists = gather_lists(ranks, "results of devices", own);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    std::span<const std::byte> list = lists[std::size_t(rank)];
    if (rank == ranks.rank()) continue;
    for (const std::size_t d : devices_of(rank)) outcomes[d] = unpack(list, results_of(d));
    if (!list.empty())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("rank {} has larger results; give all ranks the same layer", rank));
  }
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
