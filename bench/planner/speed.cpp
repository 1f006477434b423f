#include "tessera/bench/planner/speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "tessera/base/error.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/study/verdict.hpp"
#include "tessera/tests/planner/enumeration.hpp"

namespace tessera::bench {
namespace {

planner::Options options_of(Planning planning) {
  const bool parity = planning == Planning::Parity || planning == Planning::EnumerateParity;
  return parity ? planner::parity_options() : planner::Options{};
}

bool enumerates(Planning planning) {
  return planning == Planning::EnumerateParity || planning == Planning::EnumerateDefault;
}

template <class T>
T at_share(std::vector<T> values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(share * double(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[std::size_t(rank)];
}

std::string count_text(std::int64_t count) { return count > 0 ? std::to_string(count) : ""; }

double cpu_milliseconds() { return 1e3 * double(std::clock()) / CLOCKS_PER_SEC; }

constexpr const char* kLine = "{:<34} {:>9} {:>9} {:>9} {:>9} {:>12} {:>12}\n";

}  // namespace

std::string to_string(Planning planning) {
  switch (planning) {
    case Planning::Parity:
      return "parity";
    case Planning::Default:
      return "default";
    case Planning::Verdict:
      return "verdict on a default plan";
    case Planning::EnumerateParity:
      return "parity, enumerated";
    case Planning::EnumerateDefault:
      return "default, enumerated";
  }
  throw Error(ErrorCode::Internal, "unknown way of planning");
}

PlanTimes::PlanTimes(Planning planning, const std::vector<planner::RecordedPlan>& rows)
    : name_(to_string(planning)), planning_(planning) {
  for (const planner::RecordedPlan& row : rows) problems_.push_back(row.problem());
  milliseconds_.resize(problems_.size());
  evaluations_.resize(problems_.size());
}

void PlanTimes::measure() {
  for (std::size_t i = 0; i < problems_.size(); ++i)
    milliseconds_[i].push_back(planning_ == Planning::Verdict
                                   ? milliseconds_of_verdict(problems_[i])
                                   : milliseconds_of_plan(i));
}

double PlanTimes::milliseconds_of_plan(std::size_t i) {
  const planner::Options options = options_of(planning_);
  const double before = cpu_milliseconds();
  const planner::PlanResult result =
      enumerates(planning_) ? planner::plan_by_enumeration(problems_[i], machine_, options)
                            : planner::plan(problems_[i], machine_, options);
  evaluations_[i] = result.evaluations;
  return cpu_milliseconds() - before;
}

double PlanTimes::milliseconds_of_verdict(const Problem& problem) const {
  const planner::PlanResult planned = planner::plan(problem, machine_);
  if (!planned.has_plan) return 0;  // there is nothing to judge
  const planner::PlannedLayer layer{problem, machine_, {}, planned.plan};
  const double before = cpu_milliseconds();
  static_cast<void>(study::plan_verdict(layer, nullptr));
  return cpu_milliseconds() - before;
}

double PlanTimes::percentile(double share) const {
  std::vector<double> medians;
  for (const std::vector<double>& times : milliseconds_) medians.push_back(at_share(times, 0.5));
  return at_share(medians, share);
}

std::int64_t PlanTimes::median_evaluations() const { return at_share(evaluations_, 0.5); }
std::int64_t PlanTimes::most_evaluations() const { return at_share(evaluations_, 1.0); }

std::string to_text(const std::vector<PlanTimes>& all) {
  std::string text = fmt::format(kLine, "CPU time of a plan, ms", "median", "p90", "p99", "max",
                                 "evaluations", "most");
  for (const PlanTimes& t : all)
    text += fmt::format(kLine, t.name(), fmt::format("{:.3f}", t.median()),
                        fmt::format("{:.3f}", t.percentile(0.9)),
                        fmt::format("{:.3f}", t.percentile(0.99)), fmt::format("{:.3f}", t.most()),
                        count_text(t.median_evaluations()), count_text(t.most_evaluations()));
  // These were measured once, for problems like these on one core of this kind.
  text += fmt::format(kLine, "PopLibs 3.4 (recorded)", "12.6", "52", "184", "227", "", "");
  text += fmt::format(kLine, "plain enumeration in C++ (recorded)", "1.1", "", "", "55", "", "");
  return text;
}

}  // namespace tessera::bench
