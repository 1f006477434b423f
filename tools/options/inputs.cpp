#include "tessera/tools/options/inputs.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/tools/options/exit_code.hpp"

namespace tessera::tools {
namespace {

void check_size(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (!failed && bytes > std::uintmax_t{kLargestText})
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: is larger than {} bytes, the limit for files of its kind",
                            printable(path), kLargestText));
}

}  // namespace

planner::PlanResult PlanSource::plan(const Problem& problem, const device::Machine& machine,
                                     const planner::Options& options, const PatternStats* stats) {
  if (!cache_) return planner::plan(problem, machine, options, stats);
  planner::PlanResult result = cache_->plan(problem, machine, options, stats);
  const std::string failure = cache_->store_failure();
  if (!failure.empty() && !std::exchange(has_warned_, true))
    print_warning(failure + "; the run goes on without storing plans");
  return result;
}

planner::BestEffort PlanSource::plan_or(OnNoFit on_no_fit, const Problem& problem,
                                        const device::Machine& machine,
                                        const planner::Options& options,
                                        const PatternStats* stats) {
  planner::PlanResult result = plan(problem, machine, options, stats);
  if (result.has_plan) return {std::move(result), {}, problem, options};
  // A search that reached its limit does not know whether a plan exists.
  if (result.status == planner::PlanStatus::LimitReached)
    throw Error(ErrorCode::NoSolution, result.reason);
  if (on_no_fit == OnNoFit::BestEffort) {
    planner::BestEffort effort = planner::plan_best_effort(problem, machine, options, stats);
    if (effort.result.has_plan) return effort;
  }
  std::string why = to_text(planner::explain_no_fit(problem, machine, options, stats));
  why.pop_back();  // a message does not end with a line end
  throw Error(ErrorCode::NoSolution, why);
}

planner::PlannedLayer load_plan(const std::string& path) {
  return planner::plan_from_json(report::without_notes(load_text(path)), path);
}

std::string load_text(const std::string& path) {
  if (path != "-") {
    check_size(path);
    return read_file(path);
  }
  std::string text;
  for (char bytes[4096]; std::cin.read(bytes, sizeof bytes), std::cin.gcount() > 0;) {
    text.append(bytes, std::size_t(std::cin.gcount()));
    if (std::ssize(text) > kLargestText)
      throw Error(ErrorCode::BadInput,
                  fmt::format("standard input is larger than {} bytes", kLargestText));
  }
  return text;
}

}  // namespace tessera::tools
