#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/study/plan_answer.hpp"
#include "tessera/tools/options/layer_arguments.hpp"
#include "tessera/tools/options/pod_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The formulas that plans are priced by.
enum class CostModel { Default, PopSparse };

// The command line of `tessera plan`.
struct PlanArguments : LayerArguments {
  std::int64_t block_rows = 0, block_cols = 0;  // 0: --block-size
  CostModel cost_model = CostModel::Default;
  std::string table;   // path of a table to plan; "-": standard input
  std::string output;  // path; empty: standard output
  bool json = false, csv = false, explain = false, is_static = false;
  bool layer_given = false, machine_given = false;
  PodArguments pod;  // several devices; not used: one

  // Returns the options that those of the command line apply to.
  planner::Options base() const {
    planner::Options base;
    base.poplibs_parity = cost_model == CostModel::PopSparse;
    return base;
  }
  BlockShape block_to_plan() const {
    return {block_rows != 0 ? block_rows : block.rows, block_cols != 0 ? block_cols : block.cols};
  }
};

// Adds the options to a command.
void add_plan_options(CLI::App& app, PlanArguments& arguments);

// Completes the arguments when `app` has parsed, and checks values that depend on several options.
void check_plan_options(const CLI::App& app, PlanArguments& arguments);

// Sets the layer of `asked` to the requested one, of the given sizes or of a file with its pattern,
// and returns its problem.
Problem& ask_layer(PlanArguments arguments, study::PlanAnswer& asked);

// Returns the weights as elements: those of the file, or blocks drawn from the first seed, as
// sparse_fc_layer draws them.
sparse::Csr<double> pattern_to_plan(const PlanArguments& arguments, BlockShape block);

}  // namespace tessera::tools
