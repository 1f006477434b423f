#include "tessera/bench/planner/quality.hpp"

#include <algorithm>
#include <cstdint>

#include "tessera/base/error.hpp"
#include "tessera/bench/planner/shuffle.hpp"
#include "tessera/bench/planner/skewed_patterns.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/planner/enumeration.hpp"

namespace tessera::bench {
namespace {

using planner::RecordedPlan;

constexpr std::size_t kUniformProblems = 60;
constexpr std::size_t kSkewedProblems = 30;
// The largest number of multiply-adds of a pass. The engine computes all of them in about a second
// on two cores.
constexpr double kMostWork = 1e9;
// The largest number of places of a skewed pattern, which is drawn place by place in a tenth of a
// second and 64 MiB.
constexpr double kMostSkewedPlaces = 1 << 22;
// The largest density: above it, too few places are empty for a pattern to be skewed.
constexpr double kMostSkewedDensity = 0.25;

double places(const Problem& p) {
  return double(p.size.x) * double(p.size.y) / double(p.block.area());
}

bool is_uniform_choice(const RecordedPlan& row) {
  return row.found() && row.text("mem_retry") == "0.6" && multiply_adds(row.problem()) <= kMostWork;
}

bool is_skewed_choice(const RecordedPlan& row) {
  const Problem p = row.problem();
  return is_uniform_choice(row) && p.density <= kMostSkewedDensity &&
         places(p) <= kMostSkewedPlaces;
}

std::vector<RecordedPlan> choose(const QualityRequest& request, std::size_t count,
                                 bool (*suits)(const RecordedPlan&)) {
  std::vector<RecordedPlan> rows = planner::read_recorded_plans(request.rows);
  if (!request.rows.empty()) return rows;
  std::erase_if(rows, [&](const RecordedPlan& row) { return !suits(row); });
  Random random(request.seed);
  shuffle(rows, random);
  if (rows.size() > count) rows.resize(count);
  return rows;
}

planner::Options pinned_to(const planner::Plan& plan, const Problem& problem) {
  planner::Options options;
  options.constraints.x = plan.partition.x;
  options.constraints.y = plan.partition.y;
  options.constraints.z = plan.partition.z;
  options.constraints.use_dense = false;
  options.shared_buckets = true;
  if (problem.grad_w) options.constraints.grad_w_exchange_buckets = plan.grad_w_exchange_buckets;
  return options;
}

std::optional<double> quotient(std::optional<Cycles> a, std::optional<Cycles> b) {
  if (!a || !b) return std::nullopt;
  return double(a->value) / double(b->value);
}

std::optional<Cycles> sum(std::optional<Cycles> a, std::optional<Cycles> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

// PopLibs' plan for a row, as it is recorded, and the fields that the table leaves out.
planner::Plan poplibs_plan(const RecordedPlan& row, const device::Machine& machine) {
  if (!row.found())
    throw Error(ErrorCode::InvalidArgument,
                row.text("id") + ": PopLibs has no plan to compare with; name another row");
  return planner::plan_or_throw(row.problem(), machine, planner::parity_options());
}

// The run of ours with the planner's usual options: `sparse`, unless a plan for all of R costs
// less.
Run usual_run(const Layer& layer, const Run& sparse, const PatternStats* stats,
              Executor& executor) {
  const planner::PlanResult result = planner::plan(layer.problem, layer.machine, {}, stats);
  const bool is_dense = result.has_plan && result.plan.use_dense;
  return is_dense ? simulate_plan(layer, result.plan, executor) : sparse;
}

// Our plans, PopLibs' partition in our buckets, and PopLibs' plan as it is.
Comparison compare(const Layer& layer, const RecordedPlan& row, const PatternStats* stats,
                   Executor& executor) {
  const planner::Plan poplibs = poplibs_plan(row, layer.machine);
  const planner::Options pinned = pinned_to(poplibs, layer.problem);
  Comparison c{.name = layer.name,
               .problem = layer.problem,
               .poplibs_partition = poplibs.partition,
               .ours = simulate(layer, planner::sparse_options(), stats, executor),
               .pinned = simulate(layer, pinned, stats, executor),
               .as_poplibs = simulate(layer, planner::parity_options(), nullptr, executor)};
  c.usual = usual_run(layer, c.ours, stats, executor);
  return c;
}

void note_if_less(std::optional<Cycles>& least, const Run& run) {
  const std::optional<Cycles> cycles = run.simulated();
  if (cycles && (!least || *cycles < *least)) least = cycles;
}

void find_best_nearby(const Layer& layer, std::size_t count, Executor& executor,
                      Comparison& comparison) {
  note_if_less(comparison.best_nearby, comparison.ours);
  note_if_less(comparison.best_nearby, comparison.pinned);
  planner::Options options;
  for (const planner::PlanConstraints& pins :
       planner::cheapest_partitions(layer.problem, layer.machine, options, count)) {
    options.constraints = pins;
    note_if_less(comparison.best_nearby, simulate(layer, options, nullptr, executor));
  }
}

Layer uniform_layer(const RecordedPlan& row, std::uint64_t seed) {
  const Problem p = row.problem();
  return {row.text("id"), p, device::machine_preset("gc200"),
          sparse::random_pattern(p.size.x, p.size.y, p.block, p.density, seed)};
}

// Runs both partitions on the other patterns of a request.
void find_ratio_over_patterns(const RecordedPlan& row, const QualityRequest& request,
                              Executor& executor, Comparison& comparison) {
  const device::Machine machine = device::machine_preset("gc200");
  const planner::Options pinned = pinned_to(poplibs_plan(row, machine), comparison.problem);
  std::optional<Cycles> ours = comparison.ours.simulated(), others = comparison.pinned.simulated();
  for (std::size_t i = 1; i < request.patterns && ours && others; ++i) {
    const Layer layer = uniform_layer(row, request.seed + i);
    const PatternStats stats = sparse::pattern_stats(layer.weights);
    const PatternStats* known = request.told ? &stats : nullptr;
    ours = sum(ours, simulate(layer, planner::sparse_options(), known, executor).simulated());
    others = sum(others, simulate(layer, pinned, known, executor).simulated());
  }
  comparison.ours_of_all = ours;
  comparison.pinned_of_all = others;
}

Comparison compare_row(const RecordedPlan& row, const QualityRequest& request, Executor& executor) {
  const Layer layer = uniform_layer(row, request.seed);
  const PatternStats stats = sparse::pattern_stats(layer.weights);
  Comparison comparison = compare(layer, row, request.told ? &stats : nullptr, executor);
  if (request.nearby > 0) find_best_nearby(layer, request.nearby, executor, comparison);
  if (request.patterns > 1) find_ratio_over_patterns(row, request, executor, comparison);
  return comparison;
}

Comparison compare_row_skewed(const RecordedPlan& row, Skew skew, std::uint64_t seed,
                              Executor& executor) {
  const Problem p = row.problem();
  const Layer layer{row.text("id") + " " + to_string(skew), p, device::machine_preset("gc200"),
                    skewed_pattern(skew, {p.size.x, p.size.y, p.block, p.density}, seed)};
  const PatternStats stats = sparse::pattern_stats(layer.weights);
  return compare(layer, row, &stats, executor);
}

}  // namespace

std::optional<double> Comparison::to_pinned() const {
  return quotient(ours.simulated(), pinned.simulated());
}
std::optional<double> Comparison::to_poplibs() const {
  return quotient(ours.simulated(), as_poplibs.simulated());
}
std::optional<double> Comparison::usual_to_pinned() const {
  return quotient(usual.simulated(), pinned.simulated());
}
std::optional<double> Comparison::planned_to_pinned() const {
  return quotient(ours.planned(), pinned.planned());
}
std::optional<double> Comparison::nearby_to_pinned() const {
  return quotient(best_nearby, pinned.simulated());
}
std::optional<double> Comparison::patterns_to_pinned() const {
  return quotient(ours_of_all, pinned_of_all);
}

std::vector<Comparison> compare_uniform(const QualityRequest& request, Executor& executor) {
  std::vector<Comparison> comparisons;
  for (const RecordedPlan& row : choose(request, kUniformProblems, is_uniform_choice))
    comparisons.push_back(compare_row(row, request, executor));
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

Ratios ratios_of(const std::vector<Comparison>& comparisons, Ratio ratio_of) {
  Ratios ratios;
  for (const Comparison& comparison : comparisons)
    if (const std::optional<double> ratio = (comparison.*ratio_of)()) ratios.add(*ratio);
  return ratios;
}

}  // namespace tessera::bench
