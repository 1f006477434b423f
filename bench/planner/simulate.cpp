#include "tessera/bench/planner/simulate.hpp"

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {
namespace {

constexpr std::uint64_t kOperandSeed = 17;
// The largest number of multiply-adds of a pass whose results are checked in double precision,
// which takes about a second.
constexpr double kMostCheckedWork = 1e8;

template <class T>
class PassRunner {
 public:
  PassRunner(const Layer& layer, runtime::FullyConnected& machine, report::LayerReport& report)
      : layer_(layer),
        machine_(machine),
        report_(report),
        s_(random_matrix<T>(size().y, size().z, kOperandSeed)),
        q_grad_(random_matrix<T>(size().x, size().z, kOperandSeed + 1)),
        checked_(multiply_adds(layer.problem) <= kMostCheckedWork) {}

  void forward() {
    Matrix<T> q(size().x, size().z);
    add(Pass::Fwd, machine_.forward<T>(s(), q.view()));
    if (checked_)
      verdict() = verify::verify_product<T>(layer_.weights, s(), std::as_const(q).view(),
                                            rounding(Pass::Fwd));
  }
  void grad_a() {
    Matrix<T> s_grad(size().y, size().z);
    add(Pass::GradA, machine_.grad_a<T>(q_grad(), s_grad.view()));
    if (checked_)
      verdict() = verify::verify_product<T>(sparse::transpose(layer_.weights), q_grad(),
                                            std::as_const(s_grad).view(), rounding(Pass::GradA));
  }
  void grad_w() {
    sparse::Csr<float> gradient = layer_.weights;
    add(Pass::GradW, machine_.grad_w<T>(q_grad(), s(), gradient.values));
    if (checked_)
      verdict() = verify::verify_gradient<T>(layer_.weights, gradient, q_grad(), s(),
                                             rounding(Pass::GradW));
  }

 private:
  const Dims& size() const { return layer_.problem.size; }
  MatrixView<const T> s() const { return s_.view(); }
  MatrixView<const T> q_grad() const { return q_grad_.view(); }
  verify::Rounding rounding(Pass pass) const {
    return {layer_.problem.data_type, layer_.problem.partials_type,
            planner::partial_sums(report_.plan, pass)};
  }
  void add(Pass pass, device::Ledger ledger) {
    report_.passes.push_back({pass, std::move(ledger), std::nullopt});
  }
  std::optional<verify::Verdict>& verdict() { return report_.passes.back().verdict; }

  const Layer& layer_;
  runtime::FullyConnected& machine_;
  report::LayerReport& report_;
  Matrix<T> s_, q_grad_;
  bool checked_;
};

template <class T>
void run_passes(const Layer& layer, runtime::FullyConnected& machine, report::LayerReport& report) {
  PassRunner<T> runner(layer, machine, report);
  runner.forward();
  if (layer.problem.grad_a) runner.grad_a();
  if (layer.problem.grad_w) runner.grad_w();
}

Run run_plan(const Layer& layer, report::LayerReport report, Executor& executor) {
  runtime::FullyConnected machine(layer.problem, report.plan, layer.machine,
                                  device::ExchangeMode::Share, executor);
  if (const auto misfit = machine.set_weights(layer.weights)) return {{}, misfit->message};
  report.spill = machine.spill();
  report.travel = machine.travel();
  report.high_water = machine.high_water();
  if (layer.problem.data_type == DataType::Half)
    run_passes<Half>(layer, machine, report);
  else
    run_passes<float>(layer, machine, report);
  if (!report.ok()) return {{}, "wrong result"};
  return {std::move(report), {}};
}

}  // namespace

double multiply_adds(const Problem& problem) {
  const Dims& size = problem.size;
  return double(size.x) * double(size.y) * double(size.z) * problem.density;
}

std::optional<Cycles> Run::simulated() const {
  if (!report) return std::nullopt;
  Cycles sum;
  for (const report::PassReport& pass : report->passes) sum += pass.ledger.total();
  return sum;
}

std::optional<Cycles> Run::planned() const {
  if (!report) return std::nullopt;
  return report->plan.cost.cycles;
}

Run simulate_plan(const Layer& layer, const planner::Plan& plan, Executor& executor) try {
  report::LayerReport report{
      .source = layer.name, .problem = layer.problem, .plan = plan, .machine = layer.machine};
  if (!plan.dense) report.grid = runtime::tile_grid(layer.problem, plan, layer.machine);
  return run_plan(layer, std::move(report), executor);
} catch (const Error& error) {
  if (error.code() == ErrorCode::Internal) throw;
  return {{}, error.what()};
}

Run simulate(const Layer& layer, const planner::Options& options, const PatternStats* stats,
             Executor& executor) try {
  const planner::PlanResult result = planner::plan(layer.problem, layer.machine, options, stats);
  if (!result.has_plan) return {{}, result.reason};
  return simulate_plan(layer, result.plan, executor);
} catch (const Error& error) {
  if (error.code() == ErrorCode::Internal) throw;
  return {{}, error.what()};
}

}  // namespace tessera::bench
