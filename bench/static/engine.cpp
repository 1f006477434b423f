#include "tessera/bench/static/engine.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {

namespace {

device::Ledger ledger_of_static(const sparse::Csr<float>& matrix, const Problem& problem,
                                const planner::StaticPlan& plan, const device::Machine& machine) {
  const auto executor = make_executor(0);
  runtime::StaticLayer layer(problem, sparse::checked(matrix), plan, machine,
                             device::ExchangeMode::Share, *executor);
  const Matrix<Half> s(problem.size.y, problem.size.z);
  Matrix<Half> q(problem.size.x, problem.size.z);
  return layer.forward<Half>(s.view(), q.view());
}

}  // namespace

Cycles run_static(const sparse::Csr<float>& matrix, const Problem& problem,
                  const planner::StaticPlan& plan, const device::Machine& machine) {
  return ledger_of_static(matrix, problem, plan, machine).total();
}

namespace {

constexpr std::int64_t kSide = 4096, kBatch = 1024;
constexpr double kDensity = 1.0 / 16;

device::Ledger run_dynamic(const sparse::Csr<float>& matrix, const Problem& problem,
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
  return layer.forward<Half>(s.view(), q.view());
}

// Returns the cycles of a rate of non-zeros that was published, at the clock of a Bow.
double published_cycles(double teraflops) {
  constexpr double kGigahertz = 1.85;
  return 2.0 * kSide * kSide * kBatch * kDensity / teraflops / 1e12 * kGigahertz * 1e9;
}

Cycles cycles_in(const device::Ledger& ledger, Phase phase) {
  Cycles sum;
  for (const device::StepRecord& step : ledger.steps)
    if (phase == Phase::Overhead)
      sum += step.overhead;
    else if (step.phase == phase)
      sum += step.cycles;
  return sum;
}

double ratio(const device::Ledger& a, const device::Ledger& b) {
  return double(a.total().value) / double(b.total().value);
}

}  // namespace

double BesideDynamic::over_float_sums() const { return ratio(float_sums, of_static); }
double BesideDynamic::over_half_sums() const { return ratio(half_sums, of_static); }

BesideDynamic run_beside_dynamic(const device::Machine& machine) {
  const auto matrix = bench::measured_pattern(kSide, {16, 16}, kDensity);
  Problem problem = half_problem(matrix, kBatch);
  problem.density = kDensity;
  const auto plan = planner::plan_static(problem, view_of(matrix), machine).plan.value();
  BesideDynamic result{.of_static = ledger_of_static(matrix, problem, plan, machine)};
  problem.partials_type = DataType::Float;
  result.float_sums = run_dynamic(matrix, problem, machine);
  problem.partials_type = DataType::Half;
  result.half_sums = run_dynamic(matrix, problem, machine);
  return result;
}

std::string to_text(const BesideDynamic& ledgers) {
  // 27 TFLOP/s is the best of all batches, which is that of 1024 (published.md); the static cell is
  // one of tests/data/published_static.tsv.
  constexpr double kDynamicRate = 27, kStaticCycles = 79101;
  std::string text = fmt::format(
      "cycles of Fwd, 4096 x 4096, blocks of 16, half, batch 1024, density 1/16, on the engine\n\n"
      "{:<24} {:>10} {:>20} {:>10}\n{:<24} {:>10} {:>20} {:>10}\n",
      "", "static", "may change", "may change", "sums", "half", "float (as published)", "half");
  const auto row = [&text](std::string_view name, double a, double b, double c) {
    text += fmt::format("{:<24} {:>10.0f} {:>20.0f} {:>10.0f}\n", name, a, b, c);
  };
  for (const Phase phase : {Phase::Arrange, Phase::PreArrange, Phase::Distribute, Phase::Propagate,
                            Phase::Reduce, Phase::Overhead})
    row(to_string(phase), double(cycles_in(ledgers.of_static, phase).value),
        double(cycles_in(ledgers.float_sums, phase).value),
        double(cycles_in(ledgers.half_sums, phase).value));
  row("all", double(ledgers.of_static.total().value), double(ledgers.float_sums.total().value),
      double(ledgers.half_sums.total().value));
  text += fmt::format("{:<24} {:>10.0f} {:>20.0f} {:>10}\n", "published", kStaticCycles,
                      published_cycles(kDynamicRate), "-");
  return text;
}

}  // namespace tessera::bench
