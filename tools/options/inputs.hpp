#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/io/read_options.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/cost_model.hpp"
#include "tessera/tools/options/layer_arguments.hpp"

namespace tessera::tools {

// The source of a program's plans: the planner, with a cache in front of it if a folder is given.
class PlanSource {
 public:
  // An empty `cache_folder` means no cache. Throws Error{InvalidArgument} if the folder cannot be
  // created.
  explicit PlanSource(const std::string& cache_folder) {
    if (!cache_folder.empty()) cache_.emplace(cache_folder);
  }

  // Returns the result of PlanCache::plan if there is a cache, else of planner::plan. Warns once on
  // stderr if a plan cannot be stored.
  planner::PlanResult plan(const Problem& problem, const device::Machine& machine,
                           const planner::Options& options, const PatternStats* stats = nullptr);

  // Returns the plan of the request. If nothing fits and `on_no_fit` allows it, returns the plan of
  // a relaxed request. Throws Error{NoSolution} with the text of planner::explain_no_fit if there
  // is no such plan either, and Error{NoSolution} if the search reached its limit. The result
  // always has a plan.
  planner::BestEffort plan_or(OnNoFit on_no_fit, const Problem& problem,
                              const device::Machine& machine, const planner::Options& options,
                              const PatternStats* stats);

 private:
  std::optional<planner::PlanCache> cache_;
  bool has_warned_ = false;
};

// Reads a plan file, with or without notes. Throws Error{BadInput} if it is missing or malformed.
planner::PlannedLayer load_plan(const std::string& path);

// The largest file of options, problems, a table or a plan that programs read, in bytes.
inline constexpr std::int64_t kLargestText = std::int64_t{1} << 28;

// Returns the bytes of a file, or of standard input if `path` is "-". Throws Error{BadInput}, which
// names the file, if it cannot be read or is larger than kLargestText.
std::string load_text(const std::string& path);

}  // namespace tessera::tools
