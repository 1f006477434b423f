#include "tessera/study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/report/report.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/measured_model.hpp"
#include "tessera/study/planned_model.hpp"

namespace tessera::study {
namespace {

constexpr std::size_t kMostRemedies = 2;

// A larger dense layer is not measured: 0.5 GB of weights, about half a second for a pass.
constexpr double kMostDenseValues = 128e6, kMostDenseFlops = 70e9;

// Above this spread, other programs have slowed the runs down, and nothing is said.
constexpr double kMostSpread = 0.2;

std::string change_of(const Cost& best, const Form& own, std::int64_t batch,
                      std::int64_t own_batch) {
  const std::string blocks = best.block == own.block ? "" : best.name() + " blocks";
  const std::string with = batch == own_batch ? best.note : fmt::format("batch {}", batch);
  return blocks + (blocks.empty() || with.empty() ? "" : " and ") + with;
}

// Returns the batches with which a layer may cost less. One that is run has operands of its own.
std::vector<std::int64_t> batches_of(const CostModel& model) {
  const std::int64_t batch = model.layer().size.z;
  if (model.origin() == Origin::Measured) return {batch};
  return {batch, 4 * batch, 16 * batch, batch / 4, batch / 16};
}

// Returns the blocks and batches with which a sparse layer costs less than dense, by more than the
// error of the costs.
std::vector<report::Remedy> remedies_of(CostModel& model, const Form& own) {
  std::vector<report::Remedy> found;
  const std::int64_t batch = model.layer().size.z;
  for (const std::int64_t z : batches_of(model)) {
    if (z < 1 || z > kLargestBatch) continue;
    const Cost dense = model.dense(z);
    if (!dense.value) continue;
    const double limit = *dense.value * (1 - model.error(dense, dense));
    std::vector<Cost> costs;
    for (Form form : model.alternatives(own)) {
      form.batch = z;
      costs.push_back(model.below(form, limit));
    }
    const Cost* best = cheapest_of(costs);
    if (best == nullptr || !best->is_below(limit)) continue;
    const std::string change = change_of(*best, own, z, batch);
    if (change.empty()) continue;  // the plan wins, but the run does not
    found.push_back({change, *dense.value / *best->value});
    if (z == batch || found.size() == kMostRemedies) break;
  }
  return found;
}

report::DenseComparison comparison_of(const CostModel& model, const Cost& sparse,
                                      const Cost& dense) {
  report::DenseComparison c{.sparse_name = sparse.name() + " blocks",
                            .passes = {},
                            .is_whole_step = true,
                            .no_dense = dense.value ? "" : dense.note,
                            .no_sparse = sparse.value ? "" : sparse.note,
                            .dense_name = dense.kernel,
                            .unit = model.unit(),
                            .how = to_string(model.origin()),
                            .density = sparse.density,
                            .error = model.error(sparse, dense),
                            .outlook = {}};
  for (std::size_t i = 0; i < std::max(sparse.passes.size(), dense.passes.size()); ++i) {
    const Pass pass = i < sparse.passes.size() ? sparse.passes[i].first : dense.passes[i].first;
    c.passes.push_back({pass, {}, {}});
    if (i < sparse.passes.size()) c.passes.back().sparse = sparse.passes[i].second;
    if (i < dense.passes.size()) c.passes.back().dense = dense.passes[i].second;
  }
  return c;
}

}  // namespace

Cost best_dense(CostModel& model, const Form& own, const Cost& sparse) {
  Cost dense = model.dense();
  if (sparse.density < 1 && dense.value) {
    const Form full{.block = own.block};
    if (const Cost all = model.below(full, *dense.value); all.is_below(*dense.value)) {
      dense = all;
      dense.is_dense = true;
      dense.kernel = all.name() + " blocks, all stored";
    }
  } else if (sparse.value && (!dense.value || *sparse.value < *dense.value)) {
    dense = sparse;
    dense.is_dense = true;
    dense.kernel = sparse.name() + " blocks, all stored";
  }
  return dense;
}

namespace {

bool is_small(const Problem& problem) {
  const double values = double(problem.size.x) * double(problem.size.y);
  return values <= kMostDenseValues && 2 * values * double(problem.size.z) <= kMostDenseFlops;
}

// The costs of a run on this computer, of all groups.
struct RunCosts {
  Cost measured, forecast;
};

RunCosts costs_of(const report::HostReport& report) {
  RunCosts costs;
  costs.measured.value = costs.forecast.value = 0;
  costs.measured.block = costs.forecast.block = report.problem.block;
  costs.measured.density = costs.forecast.density = report.problem.density;
  double spread = 0;
  for (const report::HostPassReport& pass : report.passes) {
    costs.measured.passes.emplace_back(pass.pass, pass.times.seconds);
    costs.forecast.passes.emplace_back(pass.pass, pass.forecast_seconds);
    *costs.measured.value += pass.times.seconds;
    *costs.forecast.value += pass.forecast_seconds;
    spread += pass.spread * pass.times.seconds;
  }
  costs.measured.spread = *costs.measured.value > 0 ? spread / *costs.measured.value : 0;
  return costs;
}

// Every group takes as long, so one is measured.
Cost times_groups(Cost cost, std::int64_t groups) {
  if (groups == 1) return cost;
  *cost.value *= double(groups);
  for (auto& [pass, seconds] : cost.passes) seconds *= double(groups);
  cost.kernel += fmt::format(", {} times one group", groups);
  return cost;
}

}  // namespace

Form best_form(CostModel& model, const Form& own) {
  std::vector<Form> forms = model.alternatives(own);
  std::vector<Cost> costs;
  for (const Form& form : forms) costs.push_back(model.sparse(form));
  const Cost* best = cheapest_of(costs);
  return best == nullptr ? own : forms[std::size_t(best - costs.data())];
}

report::DenseComparison compare(CostModel& model, const Form& own) {
  const Cost sparse = model.sparse(own);
  const Cost dense = best_dense(model, own, sparse);
  report::DenseComparison c = comparison_of(model, sparse, dense);
  if (!c.passes.empty()) c.outlook = outlook_of(model, own, c, dense.value);
  return c;
}

report::Outlook outlook_of(CostModel& model, const Form& own,
                           const report::DenseComparison& comparison,
                           const std::optional<double>& dense) {
  report::Outlook outlook;
  if (!dense) return outlook;
  outlook.how = to_string(model.origin());
  outlook.pays_up_to = break_even(model, own, *dense * (1 - model.error({}, {})));
  if (comparison.sparse_wins()) return outlook;
  outlook.is_searched = true;
  outlook.remedies = remedies_of(model, own);
  return outlook;
}

std::optional<PlanVerdict> plan_verdict(const planner::PlannedLayer& layer,
                                        const sparse::Csr<double>* ones) {
  if (layer.options.poplibs_parity) return std::nullopt;
  report::LayerReport report{
      .problem = layer.problem, .plan = layer.plan, .machine = layer.machine};
  report.dense = report::dense_baseline(layer.problem, layer.machine, layer.options);
  if (layer.plan.dense) {
    std::optional<PatternStats> stats;
    if (ones != nullptr) stats = sparse::pattern_stats(in_whole_blocks(*ones, layer.problem.block));
    report.sparse = report::sparse_alternative(layer.problem, layer.machine, layer.options,
                                               stats ? &*stats : nullptr);
  }
  report::DenseComparison comparison = dense_comparison(report).value();
  comparison.outlook = outlook_of(report, layer.options, comparison, report.dense, ones);
  return PlanVerdict{report.dense, std::move(comparison)};
}

report::Outlook outlook_of(const report::LayerReport& report, const planner::Options& options,
                           const report::DenseComparison& comparison,
                           const report::DenseBaseline& dense, const sparse::Csr<double>* ones) {
  PlannedModel model(report.problem, report.machine, options);
  if (!report.plan.dense)
    model.begin_at(report.plan);
  else if (report.sparse.plan)
    model.begin_at(*report.sparse.plan);
  const Form own{report.problem.block, report.problem.density, ones};
  return outlook_of(
      model, own, comparison,
      dense.plan ? std::optional(double(dense.plan->cost.cycles.value)) : std::nullopt);
}

std::optional<report::DenseComparison> host_run_verdict(const report::HostReport& report,
                                                        const Form& own,
                                                        const host::FoundRates& found,
                                                        const Stop& is_stopped) {
  const auto is_measured = [](const report::HostPassReport& pass) { return pass.runs > 0; };
  const auto is_dense = [](const report::HostPassReport& pass) { return pass.is_dense; };
  if (report.passes.empty() || !std::ranges::all_of(report.passes, is_measured) ||
      std::ranges::all_of(report.passes, is_dense))
    return std::nullopt;
  const std::int64_t groups = report.problem.size.g;
  Problem one_group = report.problem;
  one_group.size.g = 1;
  const RunCosts run = costs_of(report);
  ForecastModel forecast(report.problem, found);
  report::DenseComparison c;
  if (is_small(report.problem)) {
    MeasuredModel model(one_group, report.threads, /*spread=*/0.03, is_stopped);
    Cost dense = times_groups(model.dense(), groups);
    if (own.density >= 1 && *run.measured.value < *dense.value) dense = run.measured;
    c = comparison_of(model, run.measured, dense);
    c.how = fmt::format("measured, +-{:.0f} %, dense +-{:.0f} %", 100 * run.measured.spread,
                        100 * dense.spread);
    if (std::max(run.measured.spread, dense.spread) > kMostSpread)
      c.disturbed = 1 - std::clamp(report.busy, 0.0, 1.0);
  } else {
    c = comparison_of(forecast, run.forecast, best_dense(forecast, own, run.forecast));
  }
  c.sparse_name = "";
  if (!c.disturbed) c.outlook = outlook_of(forecast, own, c, forecast.dense().value);
  return c;
}

}  // namespace tessera::study
