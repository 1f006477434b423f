#include "tessera/planner/layouts.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/rehome_steps.hpp"
#include "tessera/base/tile_map.hpp"

namespace tessera::planner {

Problem transposed(const Problem& problem) {
  Problem result = problem;
  std::swap(result.size.x, result.size.y);
  result.block = problem.block.transposed();
  return result;
}

PatternStats transposed(const PatternStats& stats) {
  PatternStats result{
      stats.block.transposed(), stats.col_counts, stats.row_counts, stats.bin.transposed(), {}};
  result.before.resize(stats.before.size());
  if (stats.before.empty()) return result;
  const auto rows = static_cast<std::size_t>(stats.bin_rows() + 1);
  const auto cols = static_cast<std::size_t>(stats.bin_cols() + 1);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) result.before[j * rows + i] = stats.before[i * cols + j];
  return result;
}

TwoProblems two_problems(const Problem& problem, bool grad_w_transposed) {
  TwoProblems two{problem, transposed(problem)};
  two.forward.grad_a = two.transposed.grad_a = false;
  two.forward.grad_w = problem.grad_w && !grad_w_transposed;
  two.transposed.grad_w = problem.grad_w && grad_w_transposed;
  return two;
}

Range CutSide::meeting(Range wanted) const {
  const std::int64_t step = part(0).size(), end = std::min(wanted.end, size);
  if (wanted.begin >= end) return {};
  return {wanted.begin / step, ceil_div(end, step)};
}

namespace {

// The parts of `from` that each part of `to` meets.
std::vector<Range> all_met(const CutSide& from, const CutSide& to) {
  std::vector<Range> met;
  for (std::int64_t i = 0; i < to.parts; ++i) met.push_back(from.meeting(to.part(i)));
  return met;
}

// The most parts of `from` that one part of `to` meets.
std::int64_t most_met(const CutSide& from, const CutSide& to) {
  std::int64_t most = 0;
  for (const Range& met : all_met(from, to)) most = std::max(most, met.size());
  return most;
}

CutSide rows_of(const Plan& plan, std::int64_t size) {
  return {round_up(size, plan.grain.x), plan.block.rows, plan.partition.x};
}

CutSide cols_of(const Plan& plan, std::int64_t size) {
  return {round_up(size, plan.grain.y), plan.block.cols, plan.partition.y};
}

std::int64_t value_bucket_bytes(const Plan& plan, const Problem& problem) {
  return plan.nonzeros_per_bucket * bytes_of(problem.data_type);
}

// The exchange that brings every bucket to all tiles whose cells overlap its own.
class Gathering {
 public:
  Gathering(const Plan& from, const Plan& to, const Problem& problem,
            const device::Machine& machine)
      : from_(from.partition, TileOrder::Yzx),
        to_(to.partition, TileOrder::Yzx),
        bus_(machine.tiles_per_exchange_bus),
        rows_met_(all_met(rows_of(from, problem.size_in_blocks().x),
                          cols_of(to, problem.size_in_blocks().x))),
        cols_met_(all_met(cols_of(from, problem.size_in_blocks().y),
                          rows_of(to, problem.size_in_blocks().y))) {}

  struct Buckets {
    std::int64_t alone = 0, shared = 0;  // received at single width, and at that of the bus
  };
  // Calls visit(the buckets that a tile receives) for every tile. Those that all tiles of its bus
  // take arrive at the width of all of them, except the ones on the bus itself; its own bucket
  // stays where it is.
  template <class Visit>
  void for_each_tile(const Visit& visit) const {
    std::vector<Taker> takers(static_cast<std::size_t>(bus_));
    std::vector<Cell> givers(takers.size());
    for (std::int64_t first = 0; first < to_.tiles(); first += bus_) {
      takers.resize(static_cast<std::size_t>(std::min(bus_, to_.tiles() - first)));
      givers.resize(static_cast<std::size_t>(
          std::clamp<std::int64_t>(from_.tiles() - first, 0, std::ssize(takers))));
      for (std::size_t i = 0; i < takers.size(); ++i)
        takers[i] = taker(first + static_cast<std::int64_t>(i));
      for (std::size_t i = 0; i < givers.size(); ++i)
        givers[i] = from_.cell(TileId(first + static_cast<std::int64_t>(i)));
      for_each_of_bus(takers, givers, visit);
    }
  }

 private:
  struct Taker {
    std::int64_t group;
    MetCells needs;
  };

  Taker taker(std::int64_t tile) const {
    const Cell c = to_.cell(TileId(tile));
    return {c.g,
            {rows_met_[static_cast<std::size_t>(c.y)], cols_met_[static_cast<std::size_t>(c.x)]}};
  }
  template <class Visit>
  void for_each_of_bus(std::span<const Taker> takers, std::span<const Cell> givers,
                       const Visit& visit) const {
    bool all_take = bus_ > 1 && std::ssize(takers) == bus_;
    MetCells all = takers.front().needs;
    for (const Taker& taker : takers) {
      all_take = all_take && taker.group == takers.front().group;
      all = {common(all.x, taker.needs.x), common(all.y, taker.needs.y)};
    }
    for (std::size_t i = 0; i < takers.size(); ++i) {
      const auto& [group, needs] = takers[i];
      Buckets got{0, all_take ? all.count() * from_.splits().z : 0};
      for (const Cell& giver : givers)
        if (all_take && giver.g == group && all.holds(giver.x, giver.y)) --got.shared;
      const bool has_own =
          i < givers.size() && givers[i].g == group && needs.holds(givers[i].x, givers[i].y);
      got.alone = needs.count() * from_.splits().z - got.shared - (has_own ? 1 : 0);
      visit(got);
    }
  }

  TileMap from_, to_;
  std::int64_t bus_;
  std::vector<Range> rows_met_, cols_met_;  // parts of `from` that each part of `to` meets
};

// Returns the cycles in which the slowest tile receives the buckets of all cells that its own
// meets.
Cycles gather_cycles(const Plan& from, const Plan& to, const Problem& problem,
                     const device::Machine& machine) {
  const std::int64_t bytes = value_bucket_bytes(from, problem);
  const std::int64_t width = machine.exchange_bytes_per_cycle;
  std::int64_t most = 0;
  Gathering(from, to, problem, machine).for_each_tile([&](const Gathering::Buckets& got) {
    most = std::max(most, (got.alone + got.shared) * machine.receive_start.value +
                              ceil_div(got.alone * bytes, width) +
                              ceil_div(got.shared * bytes, width * machine.tiles_per_exchange_bus));
  });
  return Cycles(most);
}

}  // namespace

std::int64_t rehome_senders(const Plan& from, const Plan& to, const Problem& problem) {
  const Dims size = problem.size_in_blocks();
  return most_met(rows_of(from, size.x), cols_of(to, size.x)) *
         most_met(cols_of(from, size.y), rows_of(to, size.y)) * from.partition.z;
}

Cycles unpack_cycles(std::int64_t values, const device::Machine& machine) {
  // A worker issues every `workers` cycles; starting costs as much as in the vector kernels.
  constexpr std::int64_t kInstructions = 3, kStart = 20;
  if (values == 0) return Cycles(0);
  return Cycles(machine.workers * (kStart + kInstructions * ceil_div(values, machine.workers)));
}

std::int64_t partial_sums(const Plan& plan, Pass pass) {
  const Dims& parts = plan.layout_of(pass).partition;
  if (pass == Pass::GradW) return parts.z;
  const bool sums_over_y = pass == Pass::Fwd || plan.runs_transposed(pass);
  return sums_over_y ? parts.y : parts.x;
}

namespace {

// The planned pattern spills nothing, so no bucket passes.
Cycles rehome_waiting(const device::Machine& machine) {
  Cycles waiting;
  for_each_rehome_step(/*passes=*/false, [&](const PassStep& step) {
    waiting += step.times * (step.kind == StepKind::Exchange ? machine.sync : machine.launch);
  });
  return waiting;
}

}  // namespace

RehomeCost rehome_cost(const Plan& from, const Plan& to, const Problem& problem,
                       const device::Machine& machine) {
  constexpr std::int64_t kWordBytes = 4, kPassing = 2;  // buckets that pass a tile at a time
  const std::int64_t bucket = value_bucket_bytes(from, problem);
  const std::int64_t bytes = rehome_senders(from, to, problem) * bucket;
  return {
      gather_cycles(from, to, problem, machine) + unpack_cycles(to.nonzeros_per_bucket, machine),
      rehome_waiting(machine), Bytes(std::max(bytes, kPassing * bucket)),
      Bytes(to.nonzeros_per_bucket * kWordBytes)};
}

// The tile with the most senders may have one of their buckets itself, and all tiles of its bus may
// take the others.
Cycles least_rehome_cycles(const Plan& from, const Plan& to, const Problem& problem,
                           const device::Machine& machine) {
  const std::int64_t others = rehome_senders(from, to, problem) - 1;
  const std::int64_t width = machine.exchange_bytes_per_cycle * machine.tiles_per_exchange_bus;
  return Cycles(others * machine.receive_start.value +
                ceil_div(others * value_bucket_bytes(from, problem), width)) +
         unpack_cycles(to.nonzeros_per_bucket, machine) + rehome_waiting(machine);
}

}  // namespace tessera::planner
