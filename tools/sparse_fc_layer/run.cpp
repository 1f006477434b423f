#include "tessera/tools/sparse_fc_layer/run.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fit.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/sparse_fc_layer/value_range.hpp"

namespace tessera::tools {
namespace {

struct Weights {
  sparse::Csr<float> matrix;  // as the layer's type holds it
  std::string source;
};

// What happened to the values of a file on their way into the layer's type; empty: nothing.
std::string note_of(const RangeFit& fit) {
  std::vector<std::string> notes;
  if (fit.exponent != 0)
    notes.push_back(fmt::format("values times 2^{} to stay in range", fit.exponent));
  if (fit.lost != 0)
    notes.push_back(fmt::format("{} of {} values round to zero", fit.lost, fit.nonzeros));
  return notes.empty() ? std::string() : fmt::format(" ({})", fmt::join(notes, "; "));
}

Weights read_weights(const Arguments& a) {
  const sparse::ReadMatrix file = load_weights(a.matrix);
  Weights weights{{}, a.matrix};
  if (file.has_values) {
    RangeFit fit = fit_range(file.matrix, a.data_type, a.matrix);
    weights.source += note_of(fit);
    weights.matrix = std::move(fit.weights);
  } else {
    weights.matrix = sparse::cast<float>(file.matrix);
    sparse::fill_signs(weights.matrix, a.seed);
    weights.source += " (a pattern; values are +1 or -1)";
  }
  weights.matrix = sparse::with_block(weights.matrix, {a.block_size, a.block_size});
  return weights;
}

Weights make_weights(const Arguments& a) {
  if (!a.matrix.empty()) return read_weights(a);
  return {sparse::random_pattern(a.output_size, a.input_size, {a.block_size, a.block_size},
                                 a.density, a.seed),
          fmt::format("random pattern, seed {}; values are +1 or -1", a.seed)};
}

// As PopSparse's tool: the layer has the machine alone.
planner::Options options_of(const Arguments& a) {
  planner::Options base;
  base.available_memory_proportion = 1.0;
  return make_options(a, base);
}

planner::Problem make_problem(const Arguments& a, const sparse::Csr<float>& weights) {
  const double places = double(weights.block_rows()) * double(weights.block_cols());
  return {.size = {1, weights.rows, weights.cols, a.batch_size},
          .block = weights.block,
          .density = double(weights.blocks()) / places,
          .data_type = a.data_type,
          .partials_type = DataType::Float,
          .grad_a = a.grad_a(),
          .grad_w = a.grad_w()};
}

// Values in [-1, 1) as the layer's type holds them.
template <class T>
Matrix<T> random_operand(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> matrix(rows, cols);
  for (T& v : matrix.elements()) v = T(float(2 * random.unit() - 1));
  return matrix;
}

template <class T>
void run_passes(runtime::FullyConnected& layer, const Weights& weights, const Arguments& a,
                runtime::LayerReport& report) {
  const Dims& size = report.problem.size;
  const Dims& splits = report.grid.splits;
  runtime::Rounding rounding{report.problem.data_type, report.problem.partials_type, splits.y};
  const auto s = random_operand<T>(size.y, size.z, a.seed + 1);
  const auto q_grad = random_operand<T>(size.x, size.z, a.seed + 2);
  const auto& s_view = std::as_const(s);
  {
    Matrix<T> q(size.x, size.z);
    device::Ledger ledger = layer.forward<T>(s_view.view(), q.view());
    report.passes.push_back({planner::Pass::Fwd, std::move(ledger),
                             runtime::verify_product<T>(weights.matrix, s_view.view(),
                                                        std::as_const(q).view(), rounding)});
  }
  if (a.grad_a()) {
    rounding.partials = splits.x;
    Matrix<T> s_grad(size.y, size.z);
    device::Ledger ledger = layer.grad_a<T>(q_grad.view(), s_grad.view());
    report.passes.push_back(
        {planner::Pass::GradA, std::move(ledger),
         runtime::verify_product<T>(sparse::transpose(weights.matrix), q_grad.view(),
                                    std::as_const(s_grad).view(), rounding)});
  }
  if (a.grad_w()) {
    rounding.partials = splits.z;
    sparse::Csr<float> gradient;
    device::Ledger ledger = layer.grad_w<T>(q_grad.view(), s_view.view(), gradient);
    report.passes.push_back({planner::Pass::GradW, std::move(ledger),
                             runtime::verify_gradient<T>(weights.matrix, gradient, q_grad.view(),
                                                         s_view.view(), rounding)});
  }
}

[[noreturn]] void throw_misfit(const partitioner::Misfit& misfit,
                               const runtime::LayerReport& report, const planner::Options& options,
                               const sparse::Csr<float>& weights) {
  const std::optional<double> enough =
      runtime::oversize_that_fits(report.problem, report.machine, options, weights);
  const std::string remedy =
      enough ? fmt::format(
                   "--matmul-options '{{\"metaInfoBucketOversizeProportion\": {:.2f}}}' "
                   "would do; it is {:.2f} now",
                   *enough, options.meta_info_bucket_oversize_proportion)
             : std::string("no metaInfoBucketOversizeProportion up to 1000 would do");
  throw Error(ErrorCode::NoSolution, fmt::format("{}; {}", misfit.message, remedy));
}

// The plan of a file, with the options it was made with, or one made for this pattern.
planner::Plan plan_for(const Arguments& a, const runtime::LayerReport& report,
                       planner::Options& options, const sparse::Csr<float>& weights) {
  if (a.plan_file.empty()) {
    const PatternStats stats = sparse::pattern_stats(weights);
    return plan_of(PlanSource(a.plan_cache).plan(report.problem, report.machine, options, &stats));
  }
  planner::PlannedLayer planned = load_plan(a.plan_file);
  // A plan serves every pattern that fits its buckets, whatever its density.
  planned.problem.density = report.problem.density;
  planner::check_plan_is_for(planned, report.problem, report.machine, a.plan_file);
  options = planned.options;
  return planned.plan;
}

}  // namespace

ExitCode exit_code_of(const runtime::LayerReport& report) {
  return report.ok() ? kOk : kCheckFailed;
}

runtime::LayerReport run_layer(const Arguments& a) {
  const device::Machine machine = make_machine(a);
  planner::Options options = options_of(a);
  const Weights weights = make_weights(a);

  runtime::LayerReport report{
      .source = weights.source, .problem = make_problem(a, weights.matrix), .machine = machine};
  report.plan = plan_for(a, report, options, weights.matrix);
  report.grid = runtime::tile_grid(report.problem, report.plan, machine);

  const auto executor = make_executor(a.threads);
  const auto mode = a.isolate ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
  runtime::FullyConnected layer(report.problem, report.plan, machine, mode, *executor);
  const auto misfit =
      layer.set_weights(weights.matrix, {.force_spills = options.partitioner_force_bucket_spills});
  if (misfit) throw_misfit(*misfit, report, options, weights.matrix);
  report.spill = layer.buckets().stats;
  report.travel = layer.buckets().travel;
  report.high_water = layer.high_water();
  if (a.data_type == DataType::Half)
    run_passes<Half>(layer, weights, a, report);
  else
    run_passes<float>(layer, weights, a, report);
  return report;
}

}  // namespace tessera::tools
