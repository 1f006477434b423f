#include "tessera/bench/planner/quality.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/bench/planner/skewed_patterns.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

using planner::RecordedPlan;

constexpr std::size_t kUniformProblems = 60;
constexpr std::size_t kSkewedProblems = 30;
// Multiply-adds of a pass: the engine does them all, a second or so on two cores.
constexpr double kMostWork = 1e9;
// Skewed patterns are drawn place by place: a tenth of a second and 64 MiB.
constexpr double kMostSkewedPlaces = 1 << 22;
// Above, too little is empty for a pattern to be skewed.
constexpr double kMostSkewedDensity = 0.25;

double places(const planner::Problem& p) {
  return double(p.size.x) * double(p.size.y) / double(p.block.area());
}

bool is_uniform_choice(const RecordedPlan& row) {
  const planner::Problem p = row.problem();
  const double work = double(p.size.x) * double(p.size.y) * double(p.size.z) * p.density;
  return row.found() && row.text("mem_retry") == "0.6" && work <= kMostWork;
}

bool is_skewed_choice(const RecordedPlan& row) {
  const planner::Problem p = row.problem();
  return is_uniform_choice(row) && p.density <= kMostSkewedDensity &&
         places(p) <= kMostSkewedPlaces;
}

void shuffle(std::vector<RecordedPlan>& rows, std::uint64_t seed) {
  Random random(seed);
  for (auto i = std::ssize(rows); i > 1; --i)
    std::swap(rows[std::size_t(i - 1)], rows[std::size_t(random.below(i))]);
}

std::vector<RecordedPlan> choose(const QualityRequest& request, std::size_t count,
                                 bool (*suits)(const RecordedPlan&)) {
  std::vector<RecordedPlan> rows = planner::read_recorded_plans();
  const auto is_named = [&](const RecordedPlan& row) {
    return std::count(request.rows.begin(), request.rows.end(), row.text("id")) > 0;
  };
  if (!request.rows.empty()) {
    std::erase_if(rows, [&](const RecordedPlan& row) { return !is_named(row); });
    return rows;
  }
  std::erase_if(rows, [&](const RecordedPlan& row) { return !suits(row); });
  shuffle(rows, request.seed);
  if (rows.size() > count) rows.resize(count);
  return rows;
}

planner::Options pinned_to(const planner::Plan& plan, const planner::Problem& problem) {
  planner::Options options;
  options.constraints.x = plan.partition.x;
  options.constraints.y = plan.partition.y;
  options.constraints.z = plan.partition.z;
  if (problem.grad_w) options.constraints.grad_w_exchange_buckets = plan.grad_w_exchange_buckets;
  return options;
}

// Bucket sizes as PopLibs has them, everything else priced in full.
void size_buckets_as_poplibs(planner::PopLibsQuirks& quirks) {
  quirks.room_ignores_scatter = true;
  quirks.meta_not_divided_by_z = true;
  quirks.five_words_per_grad_w_worker = true;
  quirks.align_meta_words_as_bytes = true;
  quirks.no_end_marker_room = true;
}

std::optional<double> quotient(const Run& a, const Run& b) {
  if (!a.report || !b.report) return std::nullopt;
  return double(a.simulated()->value) / double(b.simulated()->value);
}

// PopLibs' plan for a row; the recorded one, with what the table leaves out.
planner::Plan poplibs_plan(const RecordedPlan& row, const device::Machine& machine) {
  if (!row.found())
    throw Error(ErrorCode::InvalidArgument,
                row.text("id") + ": PopLibs has no plan to compare with; name another row");
  return planner::plan_or_throw(row.problem(), machine, planner::parity_options());
}

Comparison compare_row(const RecordedPlan& row, std::uint64_t seed, Executor& executor) {
  const planner::Problem p = row.problem();
  const Layer layer{row.text("id"), p, device::machine_preset("gc200"),
                    sparse::random_pattern(p.size.x, p.size.y, p.block, p.density, seed)};
  const planner::Plan poplibs = poplibs_plan(row, layer.machine);
  return {layer.name, p, poplibs.partition, simulate(layer, {}, nullptr, executor),
          simulate(layer, pinned_to(poplibs, p), nullptr, executor)};
}

Comparison compare_row_skewed(const RecordedPlan& row, Skew skew, std::uint64_t seed,
                              Executor& executor) {
  const planner::Problem p = row.problem();
  const Layer layer{row.text("id") + " " + to_string(skew), p, device::machine_preset("gc200"),
                    skewed_pattern(skew, {p.size.x, p.size.y, p.block, p.density}, seed)};
  const planner::Plan poplibs = poplibs_plan(row, layer.machine);
  const PatternStats stats = sparse::pattern_stats(layer.weights);
  const planner::Options pinned = pinned_to(poplibs, p);
  planner::Options as_poplibs = pinned;
  size_buckets_as_poplibs(as_poplibs.quirks);
  return {layer.name,
          p,
          poplibs.partition,
          simulate(layer, {}, &stats, executor),
          simulate(layer, as_poplibs, nullptr, executor),
          simulate(layer, pinned, &stats, executor)};
}

}  // namespace

std::optional<double> Comparison::ratio() const { return quotient(ours, pinned); }
std::optional<double> Comparison::ratio_told() const { return quotient(ours, pinned_told); }
std::optional<double> Comparison::least_ratio() const {
  const Run& rival = pinned_told.report ? pinned_told : pinned;
  if (!ours.report || !rival.report) return std::nullopt;
  return double(ours.planned()->value) / double(rival.planned()->value);
}

std::vector<Comparison> compare_uniform(const QualityRequest& request, Executor& executor) {
  std::vector<Comparison> comparisons;
  for (const RecordedPlan& row : choose(request, kUniformProblems, is_uniform_choice))
    comparisons.push_back(compare_row(row, request.seed, executor));
  return comparisons;
}

std::vector<Comparison> compare_skewed(const QualityRequest& request, Executor& executor) {
  std::vector<Comparison> comparisons;
  std::size_t turn = 0;
  for (const RecordedPlan& row : choose(request, kSkewedProblems, is_skewed_choice)) {
    const Skew drawn = kSkews[turn++ % kSkews.size()];
    for (const Skew skew : kSkews)
      if (skew == drawn || !request.rows.empty())
        comparisons.push_back(compare_row_skewed(row, skew, request.seed, executor));
  }
  return comparisons;
}

Summary summary(const std::vector<std::optional<double>>& ratios) {
  Summary result;
  double logs = 0;
  for (const std::optional<double>& ratio : ratios) {
    if (!ratio) continue;
    ++result.count;
    logs += std::log(*ratio);
    result.worst = std::max(result.worst, *ratio);
  }
  if (result.count > 0) result.mean = std::exp(logs / double(result.count));
  return result;
}

}  // namespace tessera::bench
