#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/phase.hpp"

// The one table of the steps of a pass. The planner's exact cost and its lower bound count barriers
// and launches from it, and the programs of the runtime are checked against it.
namespace tessera {

// Everything that decides which steps a pass has.
struct PassForm {
  Pass pass = Pass::Fwd;
  Dims parts;                      // partition; GradA is Fwd with x and y swapped
  bool transposes = false;         // GradA of blocks with more than one row and column
  bool fetches = false;            // some tile needs operands or buckets that another tile holds
  bool rearranges = false;         // GradW with convolution units
  bool buckets_travel = false;     // GradW: buckets travel, else its operands do
  bool casts = false;              // sums and results have different types
  std::int64_t dense_rounds = 0;   // of a dense product; 0: R is in buckets
  bool arranges_operands = false;  // they come from an even spread over all tiles
  bool arranges_result = false;    // it goes to an even spread over all tiles

  friend bool operator==(const PassForm&, const PassForm&) = default;
};

// A row of the table.
struct PassStep {
  Phase phase = Phase::Distribute;
  StepKind kind = StepKind::Compute;
  std::int64_t times = 1;  // when nothing has spilled; 0: the step runs for spilled values alone
  bool moves = true;       // of an exchange: tiles receive from each other, which takes a barrier

  friend bool operator==(const PassStep&, const PassStep&) = default;
};

namespace internal {

// Fwd and GradA. A question is asked once when the first answer is that nothing has spilled.
template <class Visit>
constexpr void visit_product(const PassForm& form, Visit& visit) {
  visit({Phase::Distribute, StepKind::Compute});
  if (form.parts.x * form.parts.y > 1) {
    visit({Phase::Control, StepKind::Control});
    visit({Phase::Propagate, StepKind::Exchange, 0});
    visit({Phase::Propagate, StepKind::Compute, 0});
  }
  const bool cut = form.parts.y > 1;
  if (cut) visit({Phase::Reduce, StepKind::Exchange});
  if (cut || form.casts) visit({Phase::Reduce, StepKind::Compute});
  if (form.arranges_result) visit({Phase::Arrange, StepKind::Compute});
}

// GradW, operands travel: a round for every z, in which all tiles of a cell see its operands.
template <class Visit>
constexpr void visit_operand_rounds(const PassForm& form, Visit& visit) {
  const std::int64_t rounds = form.parts.z;
  if (rounds > 1) visit({Phase::Distribute, StepKind::Exchange, rounds});
  visit({Phase::Distribute, StepKind::Compute, rounds});
  if (form.parts.x * form.parts.y == 1) return;
  visit({Phase::Control, StepKind::Control});
  visit({Phase::Propagate, StepKind::Exchange, 0});
  visit({Phase::Propagate, StepKind::Compute, 0});
}

// GradW, buckets travel: a full circle along z, so that every bucket meets every part of the batch.
// One question begins it and one ends it; the last move goes home, and the payloads into their own
// buckets, which moves nothing between tiles.
template <class Visit>
constexpr void visit_bucket_circle(const PassForm& form, Visit& visit) {
  visit({Phase::Distribute, StepKind::Compute});
  const Dims& parts = form.parts;
  if (parts.x * parts.y * parts.z == 1) return;
  const std::int64_t moves = parts.z - 1, home = moves > 0 ? 1 : 0;
  visit({Phase::Control, StepKind::Control, 1 + home});
  visit({Phase::Propagate, StepKind::Exchange, moves});
  visit({Phase::Propagate, StepKind::Compute, moves});
  visit({Phase::Propagate, StepKind::Exchange, home});
  visit({Phase::Propagate, StepKind::Exchange, home, /*moves=*/false});
}

// A dense product in rounds: operands come, go into the order of the kernel and are multiplied. Its
// sums are cut along y, whatever the pass.
template <class Visit>
constexpr void visit_dense_rounds(const PassForm& form, Visit& visit) {
  const bool cut = form.parts.y > 1;
  for (std::int64_t round = 0; round < form.dense_rounds; ++round) {
    visit({Phase::PreArrange, StepKind::Exchange, 1, form.fetches});
    visit({Phase::Rearrange, StepKind::Compute});
    visit({Phase::Distribute, StepKind::Compute});
    if (cut) visit({Phase::Reduce, StepKind::Exchange});
    if (cut || form.casts) visit({Phase::Reduce, StepKind::Compute});
  }
}

}  // namespace internal

// Calls visit(const PassStep&) for every step of a pass in running order. Inline, because the
// planner counts the steps of every partition that it looks at.
template <class Visit>
constexpr void for_each_step(const PassForm& form, Visit visit_step) {
  auto visit = [&visit_step](const PassStep& step) { visit_step(step); };
  if (form.dense_rounds > 0) return internal::visit_dense_rounds(form, visit);
  if (form.arranges_operands) visit({Phase::Arrange, StepKind::Compute});
  if (form.transposes) visit({Phase::Transpose, StepKind::Compute});
  visit({Phase::PreArrange, StepKind::Exchange, 1, form.fetches});
  if (form.pass != Pass::GradW) return internal::visit_product(form, visit);
  if (form.rearranges) visit({Phase::Rearrange, StepKind::Compute});
  if (form.buckets_travel)
    internal::visit_bucket_circle(form, visit);
  else
    internal::visit_operand_rounds(form, visit);
  if (form.casts) visit({Phase::Cast, StepKind::Compute});
}

// The waiting that a pass which spills nothing has besides its steps.
struct StepCounts {
  std::int64_t barriers = 0;   // of exchanges
  std::int64_t launches = 0;   // of compute steps
  std::int64_t questions = 0;  // steps of control: a barrier and a launch each

  friend bool operator==(const StepCounts&, const StepCounts&) = default;
};

// Returns the barriers, launches and questions of a pass that spills nothing.
constexpr StepCounts counts_of(const PassForm& form) {
  StepCounts counts;
  for_each_step(form, [&counts](const PassStep& step) {
    switch (step.kind) {
      case StepKind::Compute:
        counts.launches += step.times;
        break;
      case StepKind::Exchange:
        counts.barriers += step.moves ? step.times : 0;
        break;
      case StepKind::Control:
        counts.questions += step.times;
        break;
    }
  });
  return counts;
}

// The phases and kinds of the steps in running order, where equal neighbours count once: what a
// program and the table must have in common.
using StepOrder = std::vector<std::pair<Phase, StepKind>>;
void append_step(StepOrder& order, Phase phase, StepKind kind);
StepOrder step_order(const PassForm& form);

}  // namespace tessera
