#pragma once

#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/planner/cost_term.hpp"

namespace tessera::planner {

// One step of a pass in an estimate. `cycles` are those of the slowest tile; `temp` is the
// temporary memory of one tile while the step runs.
struct CostTerm {
  Term name = Term::Multiply;
  Cycles cycles;
  Bytes temp;

  friend bool operator==(const CostTerm&, const CostTerm&) = default;
};

// The cost of one pass, term by term.
struct PassCost {
  Pass pass = Pass::Fwd;
  std::vector<CostTerm> terms;  // in the order the steps run

  friend bool operator==(const PassCost&, const PassCost&) = default;

  // Returns a term, or nullptr if the pass does not have it.
  const CostTerm* find(Term name) const;

  // Returns the sum over the terms.
  Cycles cycles() const;

  // Returns the largest of the terms.
  Bytes temp() const;
};

// The cost of a plan, pass by pass. Bytes are those of the fullest tile.
struct PlanCost {
  Cycles cycles;                 // sum over the passes
  Bytes temp;                    // largest of the passes
  Bytes resident;                // buckets and the tile's share of the dense operands
  std::vector<PassCost> passes;  // the planned passes, in the order Fwd, GradA, GradW

  friend bool operator==(const PlanCost&, const PlanCost&) = default;

  // Returns the cost of the pass, or nullptr if it was not planned.
  const PassCost* find(Pass pass) const;

  // Adds the next pass to the sums.
  void add(PassCost pass);
};

// Returns the terms as CSV with the heading pass,term,cycles,temporary_bytes.
std::string to_csv(const PlanCost& cost);

}  // namespace tessera::planner
