#pragma once

#include <optional>
#include <string>

#include "tessera/io/read.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// Where a program's plans come from: the planner, behind a cache when a folder for one is given.
class PlanSource {
 public:
  // Error{InvalidArgument} when the folder cannot be made.
  explicit PlanSource(const std::string& cache_folder) {
    if (!cache_folder.empty()) cache_.emplace(cache_folder);
  }

  // As planner::plan and PlanCache::plan.
  planner::PlanResult plan(const Problem& problem, const device::Machine& machine,
                           const planner::Options& options, const PatternStats* stats = nullptr);

  // The plan of the request; when nothing fits, that of a relaxed request if `on_no_fit` allows it
  // and one helps, else Error{NoSolution} with all that planner::explain_no_fit tells. A plan is
  // there in any case.
  planner::BestEffort plan_or(OnNoFit on_no_fit, const Problem& problem,
                              const device::Machine& machine, const planner::Options& options,
                              const PatternStats* stats);

 private:
  std::optional<planner::PlanCache> cache_;
};

// A plan file, whatever notes stand in it; Error{BadInput} when it is not there or is not sound.
planner::PlannedLayer load_plan(const std::string& path);

// A file with weights: elements, a row and a column at least. Error{BadInput}, whatever the limit
// it breaks.
io::ReadMatrix load_weights(const std::string& path);

// A matrix of elements in blocks; sides that are no multiple of the block are padded to one.
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

// Where rates of this computer are kept: "tessera/host_rates.json" in $XDG_CACHE_HOME, else in
// $HOME/.cache; empty when neither is set.
std::string host_rates_path();

// A file's bytes; `path` "-" is standard input. Error{BadInput} names what cannot be read.
std::string load_text(const std::string& path);

}  // namespace tessera::tools
