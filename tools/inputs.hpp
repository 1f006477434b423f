#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/io/read_options.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/layer_arguments.hpp"

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

// Reads a file of weights as elements, with at least one row and one column. Throws Error{BadInput}
// if that fails for any reason, a limit on sizes included.
io::ReadMatrix load_weights(const std::string& path, const io::ReadOptions& options = {});

// Throws Error{BadInput} with the name of the file unless there are a row and a column.
void require_sizes(const std::string& path, std::int64_t rows, std::int64_t cols);

// Returns a matrix of elements in blocks. Sides that are not a multiple of the block are padded.
template <class T>
sparse::Csr<T> in_whole_blocks(const sparse::Csr<T>& elements, BlockShape block) {
  return sparse::with_block(sparse::with_shape(elements, round_up(elements.rows, block.rows),
                                               round_up(elements.cols, block.cols)),
                            block);
}

template <class T>
sparse::CheckedCsr<T> in_whole_blocks(const sparse::CheckedCsr<T>& elements, BlockShape block) {
  return sparse::with_block(sparse::with_shape(elements, round_up(elements->rows, block.rows),
                                               round_up(elements->cols, block.cols)),
                            block);
}

// Returns the path of the file with the rates of this computer: "tessera/host_rates.json" in
// $XDG_CACHE_HOME, else in $HOME/.cache; an empty path if neither variable is set.
std::string host_rates_path();

// The largest file of options, problems, a table or a plan that programs read, in bytes.
inline constexpr std::int64_t kLargestText = std::int64_t{1} << 28;

// Returns the bytes of a file, or of standard input if `path` is "-". Throws Error{BadInput}, which
// names the file, if it cannot be read or is larger than kLargestText.
std::string load_text(const std::string& path);

}  // namespace tessera::tools
