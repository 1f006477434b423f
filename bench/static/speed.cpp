#include "tessera/bench/static/speed.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::bench {
namespace {

// The bars of one block shape in milliseconds.
struct SpeedBars {
  std::int64_t block = 1;
  const char* name = "";
  double parity = 0, counted = 0;
};

double milliseconds(const sparse::Csr<float>& matrix, const device::Machine& machine, bool parity) {
  constexpr int kRepeats = 5;
  double longest = 0;
  for (const std::int64_t batch : {64, 1024}) {
    const Problem problem = half_problem(matrix, batch);
    const auto plan = [&] {
      planner::plan_static(problem, view_of(matrix), machine, {.poplibs_parity = parity});
    };
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat)
      times.push_back(seconds(plan, Clock::OwnThread));
    std::ranges::sort(times);
    longest = std::max(longest, times[kRepeats / 2]);
  }
  return 1000 * longest;
}

// Plans batch 64 and then batch 1024, the second with the counts of the first.
double second_by_first(const sparse::Csr<float>& matrix, const device::Machine& machine) {
  constexpr int kRepeats = 5;
  std::vector<double> ratios;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    planner::StaticPlanner planner(view_of(matrix));
    const auto plan = [&](planner::StaticPlanner& by, std::int64_t batch) {
      return seconds([&] { by.plan(half_problem(matrix, batch), machine); }, Clock::OwnThread);
    };
    plan(planner, 64);
    const double kept = plan(planner, 1024);
    planner::StaticPlanner fresh(view_of(matrix));
    ratios.push_back(kept / plan(fresh, 1024));
  }
  std::ranges::sort(ratios);
  return ratios[kRepeats / 2];
}

}  // namespace

void static_speed_bars(const device::Machine& machine, Report& report) {
  constexpr std::int64_t kSide = 4096;
  constexpr double kDensity = 1.0 / 16;
  for (const SpeedBars& bars :
       {SpeedBars{16, "blocks of 16", 5, 50}, SpeedBars{1, "elements", 10, 2000}}) {
    const auto matrix = bench::measured_pattern(kSide, {bars.block, bars.block}, kDensity);
    const std::string name = std::string(bars.name) + ", ms of a plan, ";
    report.at_most(std::string(bars.name) + ", time of a second plan by that of the first",
                   second_by_first(matrix, machine), 0.5);
    report.at_most(name + "PopLibs' search", milliseconds(matrix, machine, true), bars.parity);
    report.at_most(name + "by counts", milliseconds(matrix, machine, false), bars.counted);
  }
}

}  // namespace tessera::bench
