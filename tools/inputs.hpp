#pragma once

#include <optional>
#include <string>

#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/read.hpp"

namespace tessera::tools {

// Where a program's plans come from: the planner, behind a cache when a folder for one is given.
class PlanSource {
 public:
  // Error{InvalidArgument} when the folder cannot be made.
  explicit PlanSource(const std::string& cache_folder) {
    if (!cache_folder.empty()) cache_.emplace(cache_folder);
  }

  // As planner::plan and PlanCache::plan.
  planner::PlanResult plan(const planner::Problem& problem, const device::Machine& machine,
                           const planner::Options& options, const PatternStats* stats = nullptr);

 private:
  std::optional<planner::PlanCache> cache_;
};

// The plan of a result, or Error{NoSolution} with the reason.
const planner::Plan& plan_of(const planner::PlanResult& result);

// A plan file; Error{BadInput} when it is not there or is not sound.
planner::PlannedLayer load_plan(const std::string& path);

// A file with weights: elements, a row and a column at least. Error{BadInput}, whatever the limit
// it breaks.
sparse::ReadMatrix load_weights(const std::string& path);

// A file's bytes; `path` "-" is standard input. Error{BadInput} names what cannot be read.
std::string load_text(const std::string& path);

}  // namespace tessera::tools
