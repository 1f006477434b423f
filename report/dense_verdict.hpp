#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::report {

// The unit of the costs of a comparison.
enum class CostUnit { Cycles, Seconds };

// The side of a comparison that costs less. Neither: the costs are about equal, which means that
// they differ by no more than the error that is stated for their origin. R then stays dense.
enum class Better { Sparse, Dense, Neither };

// Returns "sparse", "dense" or "about equal".
std::string to_string(Better better);

// Compares two costs with an error, which is a share of the larger one. A side without a cost does
// not fit. Neither if none fits.
Better better_of(const std::optional<double>& sparse, const std::optional<double>& dense,
                 double error);

// The errors that are stated for modelled cycles and for forecasts. docs/validation.md compares the
// model with published hardware: the largest error of dynamic products is 5.8 %, that of most
// ratios to dense is 4 %. bench/results/host_costs.md compares forecasts with measured times.
inline constexpr double kErrorOfModel = 0.05;
inline constexpr double kErrorOfForecast = 0.25;

// One pass of a sparse layer beside the dense one. One of the two costs is known at least.
struct ComparedPass {
  Pass pass = Pass::Fwd;
  std::optional<double> sparse, dense;
};

// A change of the layer with which sparse costs less than dense.
struct Remedy {
  std::string change;            // for example "4x4 blocks"
  double dense_over_sparse = 1;  // costs after the change
};

// Findings about layers of other densities, blocks and batches than the compared one.
struct Outlook {
  std::optional<double> pays_up_to;  // density from which on dense costs less than random patterns
  bool is_searched = false;          // `remedies` has all that were found
  std::vector<Remedy> remedies;      // that with the least change first
  std::string how;                   // the origin of these findings; empty: that of the costs
};

// A sparse layer beside the dense layer of the same size on the same machine.
struct DenseComparison {
  std::string sparse_name;           // the representation, for example "4x4 blocks"; may be empty
  std::vector<ComparedPass> passes;  // one at least; all of them have the same kinds of cost
  bool is_whole_step = false;        // `passes` has all passes of the layer
  bool runs_dense = false;           // the layer is the dense one, and sparse is its alternative
  std::string no_dense;              // the reason why there is no dense cost
  std::string no_sparse = {};        // the reason why there is no sparse cost
  std::string dense_name;            // its sums, or this computer's dense product; may be empty
  CostUnit unit = CostUnit::Cycles;
  std::string how = "modelled";  // the origin of the costs
  double density = 0;            // of the layer; 0: not known
  double error = kErrorOfModel;  // share by which costs may differ and be about equal
  // The times differ so much from run to run that there is no verdict: the share of the processor
  // time that other programs used meanwhile. No value: there is one.
  std::optional<double> disturbed;
  Outlook outlook;

  bool has_sparse() const { return !passes.empty() && passes.front().sparse.has_value(); }
  bool has_dense() const { return !passes.empty() && passes.front().dense.has_value(); }

  // Return sums over the passes, which must have such costs.
  double sparse_cost() const;
  double dense_cost() const;

  // Compares the passes together.
  Better better() const;
  bool sparse_wins() const { return better() == Better::Sparse; }
};

// The modelled cycles of one pass of a sparse layer.
struct PassCycles {
  Pass pass = Pass::Fwd;
  Cycles cycles;
};

// Returns the cycles of the passes of a plan.
std::vector<PassCycles> pass_cycles(const planner::PlanCost& cost);

// The cheapest dense program of a layer, or the reason why there is none.
struct DenseBaseline : planner::DensePlanResult {
  DenseBaseline(planner::DensePlanResult result = {}) : DensePlanResult(std::move(result)) {}

  // "half sums" or "float sums"; for a program with buckets "4x4 blocks, all stored". Such a
  // program has the cost, and not the parts, of `plan`.
  std::string name() const;

  std::optional<BlockShape> buckets;  // the blocks of a program with buckets that holds all of R
};

// Returns the dense program that sparse plans of a layer are compared with, under the caller's
// limit of memory. Its sums have the type that is fastest, half for halves, whatever those of the
// layer are: a user who gives up sparsity may choose it, and published products compare so
// (bench/results/published.md). A program with buckets for all blocks is a dense program, too, and
// is taken where it costs less. If no partition fits the machine, the result has the reason.
DenseBaseline dense_baseline(const Problem& problem, const device::Machine& machine,
                             const planner::Options& options);

// The cheapest plan with buckets of a layer that runs dense, or the reason why there is none.
struct SparseAlternative {
  std::optional<planner::Plan> plan;
  std::string reason;
};

// Plans a layer with buckets, whatever its options say about useDense. `stats` has its pattern;
// nullptr: it is random.
SparseAlternative sparse_alternative(const Problem& problem, const device::Machine& machine,
                                     const planner::Options& options, const PatternStats* stats);

// Returns "R dense in 16x16 blocks" for a plan that holds all of R in blocks, else an empty text.
std::string representation_name(const planner::Plan& plan);

// Returns "half sums" or "float sums".
std::string sums_name(DataType sums);

// Returns the comparison of modelled cycles with a dense plan, which has these passes, or with the
// reason why there is none.
DenseComparison compare_cycles(const std::string& sparse_name,
                               const std::vector<PassCycles>& sparse, const DenseBaseline& dense);

// Returns the comparison of a layer that runs dense, with these cycles and sums, with its plan with
// buckets.
DenseComparison compare_dense_run(const std::vector<PassCycles>& dense, DataType sums,
                                  const SparseAlternative& sparse);

// Returns whether a sparse layer pays, as parts of one sentence: the cost of the first pass and its
// ratio to the dense pass; the ratio of the whole step if there are more passes; the density up to
// which sparse pays, if it is known. If dense costs less, the first part says so, and the last one
// what would win instead. If there is no dense cost, the parts are that sparse wins and the reason.
// A layer that runs dense is named so, and its costs come before those of the sparse alternative.
// The origin of the costs follows them in brackets; findings of another origin have parts of their
// own.
std::vector<std::string> verdict_parts(const DenseComparison& comparison);

// Returns the same parts as one text without a line end.
std::string verdict_text(const DenseComparison& comparison);

// Returns the comparison as a JSON object, the "verdict" of docs/report.schema.json.
std::string to_json(const DenseComparison& comparison);

// Returns the line "verdict    ..." with these words.
std::string verdict_line(const DenseComparison& comparison);

// Returns a note if the plan is dense: that R has no buckets and, if the options left it open, how
// to keep R sparse. An empty text if R has the blocks of the layer.
std::string dense_note(const planner::Plan& plan, const planner::Options& options);

}  // namespace tessera::report
