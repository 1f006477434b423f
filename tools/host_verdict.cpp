#include "tessera/tools/host_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_forecast.hpp"
#include "tessera/tools/host_study.hpp"

namespace tessera::tools {
namespace {

// A larger dense layer is not measured: 0.5 GB of weights, about half a second for a pass.
constexpr double kMostDenseValues = 128e6, kMostDenseFlops = 70e9;

// The fastest sparse form of a plan and the dense one.
struct BestForms {
  const report::HostWay *sparse = nullptr, *dense = nullptr;
};

BestForms best_of(const report::HostPlan& plan) {
  BestForms best;
  for (const report::HostWay& way : plan.ways) {
    const report::HostWay*& one = way.is_dense ? best.dense : best.sparse;
    if (one == nullptr || way.seconds() < one->seconds()) one = &way;
  }
  TESSERA_ASSERT(best.sparse != nullptr && best.dense != nullptr);
  return best;
}

// Returns the dense product of a forecast and the type that it multiplies, as "oneDNN, float".
std::string dense_name(const report::HostPlan& plan) {
  return fmt::format("{}, {}", plan.found.rates.dense_kernel, to_string(plan.problem.data_type));
}

// Returns the blocks and batches with which the forecast of a sparse layer is faster than dense.
std::vector<report::Remedy> remedies_of(Problem problem, BlockShape block,
                                        const BlocksAs& blocks_as) {
  constexpr std::size_t kMost = 2;
  std::vector<report::Remedy> found;
  const std::int64_t batch = problem.size.z;
  for (const std::int64_t z : {batch, 4 * batch, 16 * batch, batch / 4, batch / 16}) {
    if (z < 1 || z > kLargestBatch || found.size() == kMost) continue;
    problem.size.z = z;
    const report::HostPlan plan = host_plan(problem, blocks_as);
    const BestForms best = best_of(plan);
    const std::string blocks = best.sparse->block == block ? "" : best.sparse->name() + " blocks";
    const std::string with = z == batch ? "" : fmt::format("batch {}", z);
    if (best.sparse->seconds() >= best.dense->seconds() || (blocks.empty() && with.empty()))
      continue;
    found.push_back({blocks + (blocks.empty() || with.empty() ? "" : " and ") + with,
                     best.dense->seconds() / best.sparse->seconds()});
    if (z == batch) break;  // blocks alone suffice
  }
  return found;
}

// `scale` is the cost of the layer divided by its forecast.
report::Outlook outlook_of(const report::DenseComparison& c, const Problem& problem,
                           BlockShape block, const BlocksAs& blocks_as, double scale) {
  report::Outlook outlook;
  outlook.pays_up_to = break_even_density(
      [&](double density) { return scale * host_random_seconds(problem, block, density); },
      c.dense_cost());
  if (c.sparse_wins()) return outlook;
  outlook.is_searched = true;
  outlook.remedies = remedies_of(problem, block, blocks_as);
  return outlook;
}

bool is_small(const Problem& problem) {
  const double values = double(problem.size.x) * double(problem.size.y);
  return values <= kMostDenseValues && 2 * values * double(problem.size.z) <= kMostDenseFlops;
}

// Adds the dense costs; returns their spread as a share of them.
double add_dense(const LayerArguments& layer, const report::HostReport& report,
                 report::DenseComparison& c) {
  const auto groups = double(report.problem.size.g);
  if (is_small(report.problem)) {
    LayerArguments a = layer;
    a.output_size = report.problem.size.x;
    a.input_size = report.problem.size.y;
    a.batch_size = report.problem.size.z;
    a.groups = 1;  // of which each takes as long
    const MeasuredLayer dense = HostStudy(a, report.threads).fastest_dense();
    c.dense_name = dense.kernel;
    for (std::size_t i = 0; i < c.passes.size(); ++i)
      c.passes[i].dense = groups * dense.passes[i].seconds;
    return dense.spread();
  }
  const report::HostPlan plan = host_plan(report.problem, [](BlockShape) { return 1.0; });
  const report::HostWay& dense = *best_of(plan).dense;
  c.dense_name = dense_name(plan) + ", forecast";
  for (std::size_t i = 0; i < c.passes.size(); ++i)
    c.passes[i].dense = groups * dense.passes[i].second.seconds();
  return 0;
}

}  // namespace

double expected_blocks(const Problem& p, BlockShape block) {
  const double parts = double(block.area()) / double(p.block.area());
  const double all = double(ceil_div(p.size.x, block.rows) * ceil_div(p.size.y, block.cols));
  return all * (1 - std::pow(1 - p.density, parts));
}

report::DenseComparison host_plan_verdict(const report::HostPlan& plan, const BlocksAs& blocks_as) {
  const BestForms best = best_of(plan);
  report::DenseComparison c{.sparse_name = best.sparse->name() + " blocks",
                            .passes = {},
                            .is_whole_step = true,
                            .no_dense = {},
                            .dense_name = dense_name(plan),
                            .unit = report::CostUnit::Seconds,
                            .how = "forecast",
                            .outlook = {}};
  for (std::size_t i = 0; i < best.sparse->passes.size(); ++i)
    c.passes.push_back({best.sparse->passes[i].first, best.sparse->passes[i].second.seconds(),
                        best.dense->passes[i].second.seconds()});
  const Dims size = plan.problem.size_in_blocks();
  const BlockShape block = best.sparse->block;
  c.density = blocks_as(block) / (double(size.x / block.rows) * double(size.y / block.cols));
  c.outlook = outlook_of(c, plan.problem, block, blocks_as, 1);
  return c;
}

std::optional<report::DenseComparison> host_run_verdict(const LayerArguments& layer,
                                                        const report::HostReport& report,
                                                        const BlocksAs& blocks_as) {
  const auto is_measured = [](const report::HostPassReport& pass) { return pass.runs > 0; };
  const auto is_dense = [](const report::HostPassReport& pass) { return pass.is_dense; };
  if (report.passes.empty() || !std::ranges::all_of(report.passes, is_measured) ||
      std::ranges::all_of(report.passes, is_dense))
    return std::nullopt;
  report::DenseComparison c{.sparse_name = {},
                            .passes = {},
                            .is_whole_step = true,
                            .no_dense = {},
                            .dense_name = {},
                            .unit = report::CostUnit::Seconds,
                            .density = report.problem.density,
                            .outlook = {}};
  double forecast = 0, spread = 0;
  for (const report::HostPassReport& pass : report.passes) {
    c.passes.push_back({pass.pass, pass.times.seconds, {}});
    forecast += pass.forecast_seconds;
    spread += pass.spread * pass.times.seconds;
  }
  const double dense_spread = add_dense(layer, report, c);
  if (report.problem.size.g > 1)
    c.dense_name += fmt::format(", {} times one group", report.problem.size.g);
  c.how = fmt::format("measured, +-{:.0f} %, dense +-{:.0f} %; other layers are forecast",
                      100 * spread / c.sparse_cost(), 100 * dense_spread);
  const auto groups = double(report.problem.size.g);  // forecasts of other layers are of one
  const double scale = groups * (forecast > 0 ? c.sparse_cost() / forecast : 1);
  c.outlook = outlook_of(c, report.problem, report.problem.block, blocks_as, scale);
  return c;
}

}  // namespace tessera::tools
