#include "tessera/pod/internal/pass_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/distributed/lists.hpp"

namespace tessera::pod::internal {
namespace {

// The longest text of an outcome that a rank takes from another one, in bytes.
constexpr std::size_t kLongestText = 1 << 16;

// Calls move(bytes) for the bytes of all fields and results, which it reads or overwrites. The size
// of a text is in front of it, and a longer one is cut.
template <class Move>
void for_each_field(DeviceOutcome& outcome, std::vector<float>& results, const Move& move) {
  const auto field = [&]<class T>(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      std::size_t size = std::min(value.size(), kLongestText);
      move(std::as_writable_bytes(std::span(&size, 1)));
      value.resize(std::min(size, kLongestText));
      move(std::as_writable_bytes(std::span(value)));
    } else {
      move(std::as_writable_bytes(std::span(&value, 1)));
    }
  };
  verify::Checksums& c = outcome.checks;
  const auto all = [&](auto&... fields) { (field(fields), ...); };
  all(outcome.figures, outcome.stopped, c.exact, c.compared, c.recomputed, c.damaged,
      c.first_failure, c.first_damage, c.wrong_rows, c.wrong_cols, c.first_wrong_row,
      c.first_wrong_col, c.worst);
  move(std::as_writable_bytes(std::span(results)));
}

[[noreturn]] void refuse_results(int rank) {
  throw_invalid(fmt::format("rank {} has other results; give all ranks the same layer", rank));
}

}  // namespace

std::vector<Members> groups_along(const PodGrid& grid, const std::vector<DevicePlace>& places,
                                  Axis axis) {
  Dims others = grid.parts();
  const std::int64_t members = std::exchange(along(others, axis), 1);
  std::vector<Members> groups(std::size_t(others.product()), Members(std::size_t(members)));
  for (std::size_t d = 0; d < places.size(); ++d) {
    Dims at = places[d].at;
    const std::int64_t member = std::exchange(along(at, axis), 0);
    const std::int64_t group = ((at.g * others.x + at.x) * others.y + at.y) * others.z + at.z;
    groups[std::size_t(group)][std::size_t(member)] = d;
  }
  return groups;
}

PassSteps::PassSteps(DeviceSet& set, Pass pass, const layer::PassOptions& options,
                     const DeviceOptions& target, PodLedger& ledger)
    : set_(set),
      pass_(pass),
      options_(options),
      target_(target),
      ledger_(ledger),
      devices_(chosen()) {
  ledger_ = {pass, {}, std::ssize(devices_)};
  needs_ = collectives_of(plan().problem, pass, plan().grid.parts(), plan().serial_parts,
                          set.most_values());
  if (options_.self_check != nullptr) *options_.self_check = {};
}

std::vector<std::size_t> PassSteps::chosen() const {
  const std::int64_t all = std::ssize(set_.places()), wanted = target_.devices_simulated;
  if (wanted < 0 || wanted > all)
    throw_invalid(
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
  const Shares shares = shares_at(problem, plan().grid.parts(), set_.places()[device].at);
  const Range cols = share_of(shares.z.size(), 1, plan().serial_parts, part);
  const bool is_x = rows_axis(operand) == Axis::X;
  return {shares.g,
          is_x ? shares.x : shares.y,
          {shares.z.begin + cols.begin, shares.z.begin + cols.end},
          is_x ? problem.size.x : problem.size.y};
}

Range PassSteps::Collective::part(std::int64_t size, std::size_t m) const {
  if (!schedule) return {0, size};
  const std::int64_t each = schedule->pieces_per_member, first = std::int64_t(m) * each;
  return {share_of(size, 1, schedule->pieces(), first).begin,
          share_of(size, 1, schedule->pieces(), first + each - 1).end};
}

bool PassSteps::begin_collective(Operand operand, Collective& made) {
  const auto need = std::ranges::find(needs_, operand, &PlannedCollective::operand);
  if (need == needs_.end()) {
    for (const std::size_t d : devices_) made.groups.push_back({d});
    return true;
  }
  PlannedCollective real = *need;  // with the sizes of the real parts
  if (!begin(collectives::to_string(real.operation))) return false;
  add_prices(set_.prices(), plan().grid, plan().problem.data_type, real);
  made.schedule = collectives::make_schedule(real.operation, real.levels);
  made.groups = groups_along(plan().grid, set_.places(), real.axis);
  ledger_.steps.push_back({real.seconds, {}, std::move(real)});
  return true;
}

bool PassSteps::run_devices(std::int64_t part, const Run& run, Results& results) {
  if (!begin("devices")) return false;
  std::vector<DeviceOutcome> outcomes(set_.places().size());
  const int rank = target_.ranks != nullptr ? target_.ranks->rank() : 0;
  set_.for_each(devices_of(rank), [&](std::size_t d, runtime::FullyConnected& layer) {
    run_device(d, part, run, layer, outcomes[d]);
  });
  if (target_.ranks != nullptr) take_others(outcomes, results);
  if (std::ranges::any_of(outcomes, &DeviceOutcome::stopped)) return false;
  add_device_step(part, outcomes);
  if (options_.self_check != nullptr)
    for (const std::size_t d : devices_)
      verify::add_part(outcomes[d].checks, *options_.self_check,
                       fmt::format("device {}", set_.places()[d].device));
  return true;
}

void PassSteps::run_device(std::size_t device, std::int64_t part, const Run& run,
                           runtime::FullyConnected& layer, DeviceOutcome& outcome) const {
  const DevicePlace& place = set_.places()[device];
  runtime::TilePass with;
  with.pass.stop = options_.stop;
  if (options_.self_check != nullptr) with.pass.self_check = &outcome.checks;
  with.pass.repair = options_.repair;
  if (part == 0 && target_.fault && target_.fault->device == place.device) {
    with.tiles.fault = target_.fault->fault;
    with.tiles.struck = target_.struck;
  }
  device::Ledger cost;
  try {
    outcome.stopped = !run(device, layer, with.pass, cost);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("device {} ({}): {}", place.device, to_string(place.at), error.what()));
  }
  outcome.figures = {place.device, cost.total(), cost.moved()};
}

// Returns the devices that a rank runs.
std::span<const std::size_t> PassSteps::devices_of(int rank) const {
  const int ranks = target_.ranks != nullptr ? target_.ranks->size() : 1;
  const Range own = even_part(std::ssize(devices_), ranks, rank);
  return std::span(devices_).subspan(std::size_t(own.begin), std::size_t(own.size()));
}

// Exchanges the outcomes and the results of devices with the other ranks.
void PassSteps::take_others(std::vector<DeviceOutcome>& outcomes, Results& results) {
  distributed::Communicator& ranks = *target_.ranks;
  std::vector<std::byte> own;
  for (const std::size_t d : devices_of(ranks.rank()))
    for_each_field(outcomes[d], results[d], [&](std::span<const std::byte> bytes) {
      own.insert(own.end(), bytes.begin(), bytes.end());
    });
  const auto counts = gather(ranks, "numbers of devices", std::ssize(devices_));
  if (std::ranges::count(counts, counts[0]) != std::ssize(counts))
    throw_invalid(fmt::format("ranks run {} devices of a pod; give all ranks the same layer",
                              fmt::join(counts, ", ")));
  const auto lists = gather_lists(ranks, "outcomes and results of devices", own);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    std::span<const std::byte> from = lists[std::size_t(rank)];
    for (const std::size_t d : devices_of(rank))
      for_each_field(outcomes[d], results[d], [&](std::span<std::byte> bytes) {
        if (from.size() < bytes.size()) refuse_results(rank);
        std::ranges::copy(from.first(bytes.size()), bytes.begin());
        from = from.subspan(bytes.size());
      });
    if (!from.empty()) refuse_results(rank);
  }
}

void PassSteps::add_device_step(std::int64_t part, const std::vector<DeviceOutcome>& outcomes) {
  PodStep step;
  for (const std::size_t d : devices_) step.devices.push_back(outcomes[d].figures);
  Cycles cycles = step.slowest()->cycles;
  for (const PodPass& row : plan().passes)
    if (row.pass == pass_ && part > 0) cycles += row.add_cycles;
  step.seconds = double(cycles.value) / plan().pod.machine.clock_hz;
  ledger_.steps.push_back(std::move(step));
}

void PassSteps::end() {
  const double seconds = barrier_seconds(plan().pod, plan().grid);
  if (seconds > 0) ledger_.steps.push_back({seconds, {}, {}});
}

}  // namespace tessera::pod::internal
