#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::report {

// The unit of the costs of a comparison.
enum class CostUnit { Cycles, Seconds };

// One pass of a sparse layer beside the dense one.
struct ComparedPass {
  Pass pass = Pass::Fwd;
  double sparse = 0;
  std::optional<double> dense;
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
};

// A sparse layer beside the dense layer of the same size on the same machine.
struct DenseComparison {
  std::string sparse_name;           // the representation, for example "4x4 blocks"; may be empty
  std::vector<ComparedPass> passes;  // one at least; all of them have a dense cost, or none has
  bool is_whole_step = false;        // `passes` has all passes of the layer
  std::string no_dense;              // the reason why there is no dense cost
  std::string dense_name;            // the dense product of this computer; may be empty
  CostUnit unit = CostUnit::Cycles;
  std::string how = "modelled";  // the origin of the costs
  double density = 0;            // of the layer; 0: not known
  Outlook outlook;

  bool has_dense() const { return !passes.empty() && passes.front().dense.has_value(); }

  // Return sums over the passes. There must be dense costs for the second one.
  double sparse_cost() const;
  double dense_cost() const;

  // Returns true if the sparse passes together cost less, or if there is no dense cost.
  bool sparse_wins() const;
};

// The modelled cycles of one pass of a sparse layer.
struct PassCycles {
  Pass pass = Pass::Fwd;
  Cycles cycles;
};

// Returns the cycles of the passes of a plan.
std::vector<PassCycles> pass_cycles(const planner::PlanCost& cost);

// Returns "R dense" for a plan without buckets, "R dense in 16x16 blocks" for a plan that holds all
// of R in blocks, else an empty text.
std::string representation_name(const planner::Plan& plan);

// Returns the comparison of modelled cycles with a dense plan, which has these passes, or with the
// reason why there is none.
DenseComparison compare_cycles(const std::string& sparse_name,
                               const std::vector<PassCycles>& sparse,
                               const planner::DensePlanResult& dense);

// Returns whether a sparse layer pays, as parts of one sentence: the cost of the first pass and its
// ratio to the dense pass; the ratio of the whole step if there are more passes; the density up to
// which sparse pays, if it is known. If dense costs less, the first part says so, and the last one
// what would win instead. If there is no dense cost, the parts are that sparse wins and the reason.
std::vector<std::string> verdict_parts(const DenseComparison& comparison);

// Returns the same parts as one text without a line end.
std::string verdict_text(const DenseComparison& comparison);

// Returns the comparison as a JSON object, the "verdict" of docs/report.schema.json.
std::string to_json(const DenseComparison& comparison);

}  // namespace tessera::report
