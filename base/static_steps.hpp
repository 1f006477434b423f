#pragma once

#include "tessera/base/pass_steps.hpp"

namespace tessera {

// Everything that decides which steps a pass with a static pattern has.
struct StaticSteps {
  Pass pass = Pass::Fwd;
  bool fetches = false;        // the machine has several tiles
  bool brings_values = false;  // R's values go to the tiles of every part of the batch
  bool adds = false;           // some results have partial sums on several tiles
};

// Calls visit(const PassStep&) for every step of a pass with a static pattern, in running order:
// these rows belong to the table of steps (pass_steps.hpp). Nothing spills and nothing is searched.
// The gradient of R stays where R is, so GradW does not put its result in order.
template <class Visit>
constexpr void for_each_static_step(const StaticSteps& steps, Visit visit) {
  visit(PassStep{Phase::Arrange, StepKind::Compute});
  visit(PassStep{Phase::PreArrange, StepKind::Exchange, 1, steps.fetches});
  if (steps.brings_values) visit(PassStep{Phase::Distribute, StepKind::Exchange});
  if (steps.pass == Pass::GradA) visit(PassStep{Phase::Transpose, StepKind::Compute});
  visit(PassStep{Phase::Distribute, StepKind::Compute});
  if (steps.adds) visit(PassStep{Phase::Reduce, StepKind::Exchange});
  if (steps.adds) visit(PassStep{Phase::Reduce, StepKind::Compute});
  if (steps.pass != Pass::GradW) visit(PassStep{Phase::Arrange, StepKind::Compute});
}

// Returns the order of these steps, which the program of the pass is checked against.
StepOrder static_step_order(const StaticSteps& steps);

}  // namespace tessera
