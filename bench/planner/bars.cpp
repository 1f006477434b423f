#include "tessera/bench/planner/bars.hpp"

#include <fmt/format.h>

#include "tessera/bench/timing.hpp"
#include "tessera/tests/planner/enumeration.hpp"

namespace tessera::bench {
namespace {

using Side = Bar::Side;

// A plan's time is the median of this many runs.
constexpr int kRepeats = 3;
constexpr std::size_t kSmallProblems = 200;
constexpr std::size_t kLargeProblems = 20;
constexpr std::int64_t kSmallTiles = 64;

PlanTimes measured(Planning planning) {
  PlanTimes times(planning, planner::read_recorded_plans());
  for (int i = 0; i < kRepeats; ++i) times.measure();
  return times;
}

// Returns how many of `count` recorded layers, evenly spread over the table, get the plan of a full
// enumeration.
std::int64_t count_optimal(std::size_t count, const device::Machine& machine) {
  const std::vector<planner::RecordedPlan> rows = planner::read_recorded_plans();
  std::int64_t optimal = 0;
  planner::Options one_layout;  // two are two such searches
  one_layout.per_pass_plans = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Problem problem = rows[i * rows.size() / count].problem();
    optimal += planner::equal_answers(planner::plan(problem, machine, one_layout),
                                      planner::plan_by_enumeration(problem, machine, one_layout));
  }
  return optimal;
}

// Plans some large layers densely.
void plan_large_layers(bool every_cut) {
  const device::Machine machine = device::machine_preset("bow");
  for (const std::int64_t side : {2048, 4096})
    for (const DataType type : {DataType::Half, DataType::Float})
      planner::dense_cycles({.size = {1, side, side, 256},
                             .block = {},
                             .data_type = type,
                             .grad_a = true,
                             .grad_w = true},
                            machine, every_cut);
}

}  // namespace

std::string to_text(const std::vector<Bar>& bars) {
  std::string text;
  for (const Bar& bar : bars)
    text +=
        fmt::format("{:<62} {:>9.3f} {} {:>7.3f}  {}\n", bar.name, bar.figure,
                    bar.side == Side::AtMost ? "<=" : ">=", bar.limit, bar.met() ? "ok" : "short");
  return text;
}

std::vector<Bar> speed_bars() {
  const PlanTimes parity = measured(Planning::Parity), priced = measured(Planning::Default),
                  all = measured(Planning::EnumerateParity);
  return {
      {"plan, parity, median ms", parity.median(), Side::AtMost, 1.0},
      {"plan, parity, most ms", parity.most(), Side::AtMost, 20.0},
      {"plan, default, median ms", priced.median(), Side::AtMost, 3.0},
      {"plan, default, most ms", priced.most(), Side::AtMost, 60.0},
      {"plan, parity: median time / enumeration's", parity.median() / all.median(), Side::AtMost,
       1.0},
      {"plan, parity: most time / enumeration's", parity.most() / all.most(), Side::AtMost, 1.0}};
}

std::vector<Bar> dense_speed_bars() {
  const std::vector<double> times = medians({[] { plan_large_layers(/*every_cut=*/false); },
                                             [] { plan_large_layers(/*every_cut=*/true); }},
                                            kRepeats);
  return {
      {"dense plan: time / that of pricing every cut", times[0] / times[1], Side::AtMost, 0.25}};
}

std::vector<Bar> optimality_bars() {
  device::Machine machine = device::machine_preset("gc200");
  const std::int64_t large = count_optimal(kLargeProblems, machine);
  machine.tiles = kSmallTiles;
  const std::int64_t small = count_optimal(kSmallProblems, machine);
  return {{"optimal on 64 tiles, of 200", double(small), Side::AtLeast, double(kSmallProblems)},
          {"optimal on 1472 tiles, of 20", double(large), Side::AtLeast, double(kLargeProblems)}};
}

std::vector<Bar> quality_bars(const QualityRequest& request, Executor& executor) {
  QualityRequest many = request;
  many.patterns = std::max<std::size_t>(request.patterns, 10);
  const std::vector<Comparison> runs = compare_uniform(many, executor);
  const Ratios uniform = ratios_of(runs, &Comparison::patterns_to_pinned);
  const Ratios usual = ratios_of(runs, &Comparison::usual_to_pinned);
  QualityRequest knowing = request;
  knowing.told = true;
  const Ratios told = ratios_of(compare_uniform(knowing, executor), &Comparison::to_pinned);
  const Ratios skewed = ratios_of(compare_skewed(request, executor), &Comparison::to_poplibs);
  return {
      {"uniform: problems that ran under both plans", double(uniform.count()), Side::AtLeast, 60},
      {"uniform, 10 patterns: simulated cycles / PopLibs' partition, worst", uniform.largest(),
       Side::AtMost, 1.03},
      {"uniform, 10 patterns: simulated cycles / PopLibs' partition, mean", uniform.mean(),
       Side::AtMost, 0.89},
      {"uniform, usual options: simulated cycles / PopLibs' partition, mean", usual.mean(),
       Side::AtMost, 0.89},
      {"uniform, pattern told: simulated cycles / PopLibs', worst", told.largest(), Side::AtMost,
       1.01},
      {"uniform, pattern told: simulated cycles / PopLibs', mean", told.mean(), Side::AtMost, 0.9},
      {"skewed: problems that ran under both plans", double(skewed.count()), Side::AtLeast, 30},
      {"skewed: simulated cycles / PopLibs' plan, mean", skewed.mean(), Side::AtMost, 0.8}};
}

}  // namespace tessera::bench
