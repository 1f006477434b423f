#include "tessera/planner/layouts.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"

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

namespace {

// A side of the matrix in equal parts of whole blocks.
struct CutSide {
  std::int64_t size, block, parts;

  Range part(std::int64_t i) const { return share_of(size, block, parts, i); }
  // The parts that meet these rows or columns.
  Range meeting(Range wanted) const {
    const std::int64_t step = part(0).size(), end = std::min(wanted.end, size);
    if (wanted.begin >= end) return {};
    return {wanted.begin / step, ceil_div(end, step)};
  }
};

// The most parts of `from` that one part of `to` meets.
std::int64_t most_met(const CutSide& from, const CutSide& to) {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < to.parts; ++i)
    most = std::max(most, from.meeting(to.part(i)).size());
  return most;
}

CutSide rows_of(const Plan& plan, std::int64_t size) {
  return {round_up(size, plan.grain.x), plan.block.rows, plan.partition.x};
}

CutSide cols_of(const Plan& plan, std::int64_t size) {
  return {round_up(size, plan.grain.y), plan.block.cols, plan.partition.y};
}

// Parts of `from` that all tiles on the bus of part i of `to` receive, and so receive at the width
// of all of them: neighbours there have neighbouring parts, or all the same one.
std::int64_t shared_on_bus(const CutSide& from, const CutSide& to, std::int64_t parts_of_z,
                           std::int64_t i, std::int64_t bus) {
  if (to.parts == 1) return parts_of_z % bus == 0 ? from.meeting(to.part(0)).size() : 0;
  if (to.parts % bus != 0) return 0;
  Range shared = from.meeting(to.part(i));
  for (std::int64_t j = i / bus * bus; j < (i / bus + 1) * bus; ++j) {
    const Range met = from.meeting(to.part(j));
    shared = {std::max(shared.begin, met.begin), std::min(shared.end, met.end)};
  }
  return std::max<std::int64_t>(shared.size(), 0);
}

// Returns the cycles in which the slowest tile receives the buckets of all cells that its own
// meets.
Cycles gather_cycles(const Plan& from, const Plan& to, const Problem& problem,
                     const device::Machine& machine) {
  const Dims size = problem.size_in_blocks();
  const std::int64_t a_column =
      from.partition.z * most_met(rows_of(from, size.x), cols_of(to, size.x));
  const std::int64_t bytes = a_column * from.nonzeros_per_bucket * bytes_of(problem.data_type);
  const std::int64_t bus = machine.tiles_per_exchange_bus;
  const CutSide sent = cols_of(from, size.y), taken = rows_of(to, size.y);
  Cycles most;
  for (std::int64_t i = 0; i < taken.parts; ++i) {
    const std::int64_t met = sent.meeting(taken.part(i)).size();
    const std::int64_t shared = shared_on_bus(sent, taken, to.partition.z, i, bus);
    const auto moved = [&](std::int64_t columns, std::int64_t width) {
      return Cycles(ceil_div(columns * bytes, width * machine.exchange_bytes_per_cycle));
    };
    most = std::max(
        most, met * a_column * machine.receive_start + moved(met - shared, 1) + moved(shared, bus));
  }
  return most;
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

RehomeCost rehome_cost(const Plan& from, const Plan& to, const Problem& problem,
                       const device::Machine& machine) {
  constexpr std::int64_t kWordBytes = 4, kPassing = 2;  // buckets that pass a tile at a time
  const std::int64_t senders = rehome_senders(from, to, problem);
  const std::int64_t bucket = from.nonzeros_per_bucket * bytes_of(problem.data_type);
  const std::int64_t bytes = senders * bucket;
  return {
      gather_cycles(from, to, problem, machine) + unpack_cycles(to.nonzeros_per_bucket, machine),
      machine.sync + machine.launch, Bytes(std::max(bytes, kPassing * bucket)),
      Bytes(to.nonzeros_per_bucket * kWordBytes)};
}

}  // namespace tessera::planner
