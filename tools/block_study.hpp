#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// The sides of the square blocks that a layer is compared in.
inline constexpr std::int64_t kBlockSides[] = {1, 4, 8, 16};

// The largest batch that a verdict proposes.
inline constexpr std::int64_t kLargestBatch = 1 << 20;

// Returns the pattern of --matrix as elements whose values are all 1, so that explicit zeros stay
// in it, and sets the sizes of the layer. Returns no value if no file is given. Throws the errors
// of load_weights().
std::optional<sparse::Csr<double>> load_pattern(LayerArguments& arguments);

// A layer in blocks of one shape, and its plan.
struct BlockPlan {
  BlockShape block;
  std::int64_t blocks = 0;    // that a pattern occupies; 0 if only the density is known
  double density = 0;         // share of the blocks that are stored
  double filled_percent = 0;  // share of the stored elements that belong to the pattern
  std::optional<planner::Plan> plan;
  Cycles cycles;     // of the whole batch
  std::string note;  // the relaxation or the parts of the batch, or why there is no plan

  std::string name() const;  // "4x4"
};

// The batches that a study plans.
enum class BatchCut {
  Whole,
  // A batch that has no plan as a whole is cut into the fewest of 2, 4 ... 64 equal parts that have
  // one. They run one after the other, as the rounds of a dense plan do.
  PartsIfNeeded
};

// Plans one layer in different blocks and at different densities, always sparse. One thread may
// use it at a time.
class BlockStudy {
 public:
  // The layer keys are already taken from the options of `arguments`, whose planner options apply
  // to `base`. Throws the errors of
  // make_machine() and make_options(), and Error{InvalidArgument} if a constraint asks for dense.
  explicit BlockStudy(const LayerArguments& arguments, const planner::Options& base = {});

  // The same for another layer and machine than those of the arguments.
  BlockStudy(const LayerArguments& arguments, const Problem& problem,
             const device::Machine& machine, const planner::Options& base = {});

  // The layer is known. Always plans sparse, whatever the constraints say.
  BlockStudy(const Problem& problem, const device::Machine& machine,
             const planner::Options& options);

  // Returns the layer with a random pattern.
  Problem problem(BlockShape block, double density) const;

  // Plans a known pattern of the size of the layer, whose values are all 1.
  BlockPlan plan_pattern(const sparse::Csr<double>& ones, BlockShape block,
                         BatchCut cut = BatchCut::Whole);

  // Plans a random pattern of blocks.
  BlockPlan plan_random(BlockShape block, double density, BatchCut cut = BatchCut::Whole);

  // Plans a random pattern of blocks in the cheaper form of two, as blocks or as the elements that
  // they are made of, with the batch in parts where that is needed.
  BlockPlan cheapest(BlockShape block, double density);

  // Returns the plan of the dense layer, or the reason why it does not fit the machine.
  planner::DensePlanResult dense() const;

  // Returns whether a pattern, or a random one of the layer's density if there is none, would pay
  // in blocks of another shape than the layer's, or with another batch. Plans only layers that cost
  // less than dense.
  std::vector<report::Remedy> remedies(const sparse::Csr<double>* ones);

  // Returns the largest density at which a random pattern of blocks costs less than `dense`, as
  // cheapest() plans it. `like` is the plan of the layer in these blocks, from which the search
  // starts, or nullptr. With it this takes about as long as planning the layer.
  double pays_up_to(BlockShape block, Cycles dense, const planner::Plan* like);

 private:
  std::int64_t paying_steps(BlockShape block, Cycles dense, const planner::Plan* like,
                            std::int64_t from) const;
  bool pays_in_parts(BlockShape block, Cycles dense, double density) const;
  BlockPlan planned(BlockPlan result, const Problem& asked, const PatternStats* stats);
  BlockPlan planned(BlockPlan result, const PatternStats* stats, BatchCut cut);
  // Return whether a layer in these blocks can cost less than `dense`, and the plans of all that
  // can.
  bool may_cost_less(Cycles dense, const sparse::Csr<double>* ones, BlockShape block,
                     BatchCut cut) const;
  std::vector<BlockPlan> cheaper_blocks(Cycles dense, const sparse::Csr<double>* ones,
                                        BatchCut cut);

  Problem layer_;  // its block and density are replaced
  OnNoFit on_no_fit_ = OnNoFit::Fail;
  PlanSource source_;
  device::Machine machine_;
  planner::Options options_;
};

// Returns the plan with the fewest cycles, or nullptr if there is no plan.
const BlockPlan* cheapest_of(const std::vector<BlockPlan>& plans);

// Returns what is known of other layers than this one: the density up to which random patterns in
// its blocks cost less than `dense` and, if this layer does not, what would. `ones` has the pattern
// as elements; without it the pattern is random. `like` is the plan of the layer with buckets, or
// nullptr. Nothing is known if there is no dense plan.
report::Outlook outlook_of(const report::DenseComparison& comparison, BlockStudy& study,
                           BlockShape block, const planner::DensePlanResult& dense,
                           const sparse::Csr<double>* ones, const planner::Plan* like);

// The costs of sparse layers that are known before a break-even density is searched.
struct KnownCosts {
  std::vector<std::pair<double, std::optional<double>>> points;  // costs by density, whole steps
  double guess = 0.5;                                            // the density to look at first
  double highest = 1;  // sparse does not cost less than dense at any higher density
};

// Returns the largest density, in steps of a thousandth, at which `sparse` returns a cost below
// `dense`. Costs of sparse layers grow with density, so the search narrows an interval, about where
// the line between the known costs of its ends meets `dense`. No cost means that nothing fits.
double break_even_density(const std::function<std::optional<double>(double)>& sparse, double dense,
                          const KnownCosts& known = {});

}  // namespace tessera::tools
