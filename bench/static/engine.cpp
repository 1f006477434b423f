#include "tessera/bench/static/engine.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/published/measured_pattern.hpp"

namespace tessera::bench {

Cycles run_static(const sparse::Csr<float>& matrix, const Problem& problem,
                  const planner::StaticPlan& plan, const device::Machine& machine) {
  const auto executor = make_executor(0);
  runtime::StaticLayer layer(problem, sparse::checked(matrix), plan, machine,
                             device::ExchangeMode::Share, *executor);
  const Matrix<Half> s(problem.size.y, problem.size.z);
  Matrix<Half> q(problem.size.x, problem.size.z);
  return layer.forward<Half>(s.view(), q.view()).total();
}

namespace {

Cycles run_dynamic(const sparse::Csr<float>& matrix, const Problem& problem,
                   const device::Machine& machine) {
  const PatternStats stats = sparse::pattern_stats(matrix);
  const planner::Plan plan =
      planner::plan_or_throw(problem, machine, planner::sparse_options(), &stats);
  const auto executor = make_executor(0);
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  if (const auto misfit = layer.set_weights(sparse::checked(matrix)))
    throw Error(ErrorCode::NoSolution, misfit->message);
  const Matrix<Half> s(problem.size.y, problem.size.z);
  Matrix<Half> q(problem.size.x, problem.size.z);
  return layer.forward<Half>(s.view(), q.view()).total();
}

}  // namespace

double static_over_dynamic(const device::Machine& machine) {
  constexpr double kDensity = 1.0 / 16;
  const auto matrix = tools::measured_pattern(4096, {16, 16}, kDensity);
  Problem problem = half_problem(matrix, 1024);
  problem.density = kDensity;
  problem.partials_type = DataType::Half;
  const auto plan = planner::plan_static(problem, view_of(matrix), machine).plan.value();
  const Cycles of_static = run_static(matrix, problem, plan, machine);
  return double(run_dynamic(matrix, problem, machine).value) / double(of_static.value);
}

}  // namespace tessera::bench
