#include "tessera/planner/layouts.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

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

TwoProblems two_problems(const Problem& problem, bool grad_w_there) {
  TwoProblems two{problem, transposed(problem)};
  two.here.grad_a = two.there.grad_a = false;
  two.here.grad_w = problem.grad_w && !grad_w_there;
  two.there.grad_w = problem.grad_w && grad_w_there;
  return two;
}

std::int64_t rehome_senders(Dims from, Dims to, std::int64_t values) {
  // Returns how many of `parts` equal parts of a side one of `others` equal parts may touch.
  const auto touched = [](std::int64_t parts, std::int64_t others) {
    return std::min(parts, ceil_div(parts, others) + (parts % others != 0));
  };
  const std::int64_t rows = touched(from.x * from.z, to.y), cols = touched(from.y, to.x * to.z);
  return std::min(values, rows * cols);
}

Cycles pack_cycles(std::int64_t values, const device::Machine& machine) {
  // A worker issues an instruction every `workers` cycles. Its start costs as much as in the vector
  // kernels.
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

RehomeCost rehome_cost(const Plan& from, const Plan& to, DataType type,
                       const device::Machine& machine) {
  const std::int64_t bytes = bytes_of(type);
  const std::int64_t out = from.nonzeros_per_bucket, in = to.nonzeros_per_bucket;
  const Cycles exchange =
      codelets::exchange_cycles(std::max(out, in) * bytes, {machine.exchange_bytes_per_cycle, 1});
  const Cycles starts = rehome_senders(from.partition, to.partition, in) * machine.receive_start;
  return {pack_cycles(out, machine) + exchange + starts + pack_cycles(in, machine),
          machine.sync + machine.launch + machine.launch, Bytes((out + in) * bytes)};
}

}  // namespace tessera::planner
