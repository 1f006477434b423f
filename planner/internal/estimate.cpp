#include "tessera/planner/internal/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::planner::internal {
namespace {

// The size of the operands of all groups, as the grid of the runtime pads them.
Dims padded(const Case& c, const Cut& cut) {
  Dims size = c.grains * c.candidate.grain;
  size.z = cut.parts.z * cut.share.z * c.candidate.grain.z;
  return size;
}

void finish_pass(const Case& c, const Cut& cut, Estimate& total, PassEstimate pass) {
  if (operands_spread(c, pass.pass)) {
    const Dims size = padded(c, cut);
    const std::int64_t q = pass.pass == Pass::Fwd ? 0 : arrange_cycles(c, size.g * size.x, size.z);
    const std::int64_t s =
        pass.pass == Pass::GradA ? 0 : arrange_cycles(c, size.g * size.y, size.z);
    pass.add(Term::ArrangeOperands, q + s, 0);
  }
  if (result_spread(c, pass.pass)) {
    const Dims size = padded(c, cut);
    const std::int64_t rows = pass.pass == Pass::Fwd ? size.x : size.y;
    pass.add(Term::ArrangeResult, arrange_cycles(c, size.g * rows, size.z), 0);
  }
  if (!c.parity()) {  // free in PopLibs
    if (pass.counts.questions > 0)
      pass.add(Term::Control, asking_cycles(c.machine, pass.counts), 0);
    pass.add(Term::BarriersAndLaunches, waiting_cycles(c.machine, pass.counts), 0);
  }
  total.cycles += pass.cycles;
  total.temp = std::max(total.temp, pass.temp);
  total.passes[total.pass_count++] = pass;
}

}  // namespace

codelets::MatMulKernel kernel_of(const Case& c, Method method, BlockShape block) {
  const DataType in = c.problem.data_type, sums = c.problem.partials_type;
  return {method,
          in,
          sums,
          block,
          c.machine.workers,
          c.machine.conv_units(in, sums),
          /*poplibs_estimate=*/c.parity()};
}

std::int64_t zeroing_cycles(const Case& c, std::int64_t partials) {
  const std::int64_t workers = c.machine.workers;
  if (c.parity()) return round_up(partials, workers);  // a cycle each
  return codelets::zero_cycles(partials * c.partials_bytes(), workers).value;
}

std::int64_t receive_starts(const Case& c, std::int64_t senders) {
  return c.parity() ? 0 : senders * c.machine.receive_start.value;
}

bool operands_spread(const Case& c, Pass pass) {
  return !c.parity() && spreads_operands(c.options.operand_placement, pass);
}

bool result_spread(const Case& c, Pass pass) {
  return !c.parity() && spreads_result(c.options.operand_placement, pass);
}

std::int64_t arrange_cycles(const Case& c, std::int64_t rows, std::int64_t columns) {
  const device::Machine& machine = c.machine;
  return codelets::arrange_cycles(rows * columns * c.input_bytes(), machine.tiles,
                                  machine.arrange_bytes_per_cycle)
      .value;
}

std::int64_t spread_senders(const Case& c, std::int64_t all_rows, std::int64_t rows,
                            std::int64_t columns) {
  const std::int64_t elements = c.problem.size.g * all_rows * c.problem.size.z;
  const std::int64_t run = std::max<std::int64_t>(1, ceil_div(elements, c.machine.tiles));
  const std::int64_t a_column = ceil_div(rows, run) + (rows > 1 ? 1 : 0);
  return std::min({columns * a_column, ceil_div(columns * all_rows, run) + 1, c.machine.tiles});
}

std::int64_t control_cycles(const device::Machine& machine) {
  constexpr std::int64_t kWordBytes = 4;
  return machine.control.value + ceil_div(kWordBytes, machine.exchange_bytes_per_cycle);
}

std::int64_t asking_cycles(const device::Machine& machine, const StepCounts& counts) {
  return counts.questions * control_cycles(machine);
}

std::int64_t waiting_cycles(const device::Machine& machine, const StepCounts& counts) {
  return (counts.barriers + counts.questions) * machine.sync.value +
         (counts.launches + counts.questions) * machine.launch.value;
}

std::int64_t other_sharers(std::int64_t tiles, std::int64_t rows) {
  if (rows == 0) return 0;
  const std::int64_t holders = ceil_div(rows, ceil_div(rows, tiles));
  return std::min(holders, tiles - 1);
}

std::int64_t most_senders(std::int64_t tiles, std::int64_t slice_rows, std::int64_t last_rows) {
  return std::max(other_sharers(tiles, slice_rows), other_sharers(tiles, last_rows));
}

std::int64_t least_other_sharers(std::int64_t tiles, std::int64_t rows) {
  return std::min({rows, tiles / 2 + 1, tiles - 1});
}

std::int64_t propagation_cycles(const Case& c, double spill_chance, std::int64_t steps,
                                std::int64_t bytes) {
  const codelets::ExchangeWidth width{c.machine.exchange_bytes_per_cycle, 1};
  const Cycles scan = codelets::expected_scan_cycles(c.candidate.fwd, 1, 0, 1);
  Cycles step = codelets::exchange_cycles(bytes, width) + scan, question;
  if (!c.parity()) {
    step += c.machine.sync + c.machine.launch + c.machine.receive_start;
    question = c.machine.sync + c.machine.launch + Cycles(control_cycles(c.machine));
  }
  return static_cast<std::int64_t>(
      std::ceil(spill_chance * static_cast<double>(steps * step.value + question.value)));
}

std::int64_t fetched_bytes(const Case& c, const Fetch& f) {
  // In PopLibs operands are at home wherever an even share is large enough.
  const bool here = c.parity() ? f.needed <= ceil_div(f.all, f.tiles) : f.at_home;
  return here ? 0 : f.needed * f.grain_bytes;
}

Shared shared_rows(std::int64_t bytes, std::int64_t rows, std::int64_t tiles,
                   std::int64_t consecutive) {
  const std::int64_t row_bytes = bytes / std::max<std::int64_t>(rows, 1);
  return {bytes, ceil_div(rows, tiles) * row_bytes, tiles, consecutive};
}

Cycles receive_cycles(const Case& c, const Shared& data, std::int64_t all_tiles) {
  const codelets::ExchangeWidth width{c.machine.exchange_bytes_per_cycle,
                                      c.machine.tiles_per_exchange_bus};
  return c.parity() ? codelets::broadcast_cycles(data.bytes, data.consecutive, all_tiles, width)
                    : receive_cycles(c.machine, data);
}

Cycles receive_cycles(const device::Machine& machine, const Shared& data) {
  const codelets::ExchangeWidth width{machine.exchange_bytes_per_cycle,
                                      machine.tiles_per_exchange_bus};
  // The last tile may hold less than the others, and then takes the most.
  const std::int64_t taken =
      data.holds_own ? std::min(data.bytes, data.piece_bytes * (data.tiles - 1)) : data.bytes;
  if (data.consecutive % width.tiles_per_bus != 0) return codelets::exchange_cycles(taken, width);
  const std::int64_t near = std::min(taken, data.piece_bytes * (width.tiles_per_bus - 1));
  return codelets::exchange_cycles(near, width) +
         codelets::broadcast_cycles(taken - near, width.tiles_per_bus, width.tiles_per_bus, width);
}

// The tiles that need a slice hold equal shares of its rows.
std::int64_t operand_shares(const Problem& problem, Dims parts, Dims share) {
  const std::int64_t s = ceil_div(share.y, parts.x) * share.z;
  const std::int64_t dq = ceil_div(share.x, parts.y) * share.z;
  const bool backward = problem.grad_a || problem.grad_w;
  return (s * (1 + problem.grad_a) + dq * (1 + backward)) * bytes_of(problem.data_type);
}

std::int64_t resident_bytes(const Case& c, const Cut& cut, const BucketSize& bucket) {
  const std::int64_t values = bucket.values * c.input_bytes();
  const std::int64_t words = bucket.fwd_words + bucket.grad_a_words;
  return values * (1 + c.problem.grad_w) + words * c.word_bytes() +
         operand_shares(c.problem, cut.parts, cut.share * c.candidate.grain);
}

Estimate estimate(const Case& c, const Cut& cut, const BucketSize& bucket) {
  Estimate total;
  total.bucket = bucket;
  finish_pass(c, cut, total, estimate_fwd(c, cut, bucket));
  if (c.problem.grad_a) finish_pass(c, cut, total, estimate_grad_a(c, cut, bucket));
  if (c.problem.grad_w) finish_pass(c, cut, total, estimate_grad_w(c, cut, bucket));
  total.resident = resident_bytes(c, cut, bucket);
  return total;
}

}  // namespace tessera::planner::internal
