#include "tessera/bench/static/training.hpp"

#include "tessera/bench/ratios.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

// Returns the cycles of the plan by those of the best cut for all passes, which comes next if GradA
// has tiles of its own.
double by_same_tiles(const sparse::Csr<float>& matrix, std::int64_t batch,
                     const device::Machine& machine) {
  Problem problem = half_problem(matrix, batch);
  problem.grad_a = problem.grad_w = true;
  const auto result = planner::plan_static(problem, view_of(matrix), machine);
  const planner::StaticPlan& plan = result.plan.value();
  if (!plan.grad_a || result.runner_ups.empty()) return 1;
  return double(plan.cost.cycles.value) / double(result.runner_ups.front().cycles.value);
}

}  // namespace

void training_plan_figures(const device::Machine& machine, Report& report) {
  Ratios ratios;
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t side : {512, 1024, 2048})
      for (const double density : {0.02, 0.1})
        for (const std::int64_t batch : {64, 512}) {
          const std::int64_t columns = batch == 64 ? side : 2 * side;
          const auto matrix = sparse::random_pattern(side, columns, {block, block}, density,
                                                     std::uint64_t(7 + block));
          ratios.add(by_same_tiles(matrix, batch, machine));
        }
  report.tell("plans of 36 training layers with tiles for GradA alone",
              double(ratios.count_below(1)));
  report.tell("  cycles by those with the same tiles for all passes, geometric mean",
              ratios.mean());
  report.tell("  the same, least", ratios.least());
}

}  // namespace tessera::bench
