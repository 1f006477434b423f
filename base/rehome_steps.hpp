#pragma once

#include "tessera/base/pass_steps.hpp"

namespace tessera {

// Calls visit(const PassStep&) for every step that moves R's values from the buckets of one layout
// to those of another, in running order: these rows belong to the table of steps
// (pass_steps.hpp). The values are gathered and put in their places; values that have spilled
// follow with their buckets. `passes` is true if the layouts have several tiles, between which
// buckets can pass.
template <class Visit>
constexpr void for_each_rehome_step(bool passes, Visit visit) {
  visit(PassStep{Phase::RehomeValues, StepKind::Exchange});
  visit(PassStep{Phase::RehomeValues, StepKind::Compute});
  if (!passes) return;
  visit(PassStep{Phase::RehomeValues, StepKind::Exchange, 0});
  visit(PassStep{Phase::RehomeValues, StepKind::Compute, 0});
}

// Returns the order of these steps, which the program of the move is checked against.
StepOrder rehome_step_order(bool passes);

}  // namespace tessera
