#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::report {

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

// A sparse layer beside the dense plan of the same layer on the same machine.
struct DenseComparison {
  std::string sparse_name;         // the representation, for example "4x4 blocks"; may be empty
  std::vector<PassCycles> sparse;  // one at least
  planner::DensePlanResult dense;  // has a plan of these passes, or the reason why there is none
  std::optional<double> pays_up_to = {};  // the density from which on dense costs less

  // Returns the cycles of one dense pass. The dense plan must exist.
  Cycles dense_cycles(Pass pass) const;

  // Return sums over the passes in `sparse`. The dense plan must exist for the second one.
  Cycles sparse_cycles() const;
  Cycles dense_cycles() const;

  // Returns true if all passes of the dense plan are compared.
  bool is_whole_step() const;

  // Returns true if the sparse passes together take fewer cycles, or if there is no dense plan.
  bool sparse_wins() const;
};

// Returns whether a sparse layer pays, as parts of one sentence: cycles of the first pass and their
// ratio to the dense pass; the ratio of the whole step if there are more passes; the density up to
// which sparse pays, if it is known. If dense costs less, the first part says so first. If there is
// no dense plan, the parts are that sparse wins and the reason.
std::vector<std::string> verdict_parts(const DenseComparison& comparison);

// Returns the same parts as one text without a line end.
std::string verdict_text(const DenseComparison& comparison);

}  // namespace tessera::report
