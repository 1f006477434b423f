#pragma once

#include <span>
#include <string_view>

#include "tessera/base/pass.hpp"
#include "tessera/base/phase.hpp"

namespace tessera::planner {

// The terms of a plan's cost. They are finer than the phases of a run: the exchange and the sums of
// one reduction, for instance, are two terms.
enum class Term {
  RehomeValues,
  TransposeOperand,
  ArrangeOperands,
  TransposeValues,
  ExchangeOperands,
  RearrangeOperands,
  ExchangeAlongZ,
  Multiply,
  Propagate,
  ExchangeSums,
  ReduceSums,
  RoomForSums,  // memory alone
  CastSums,
  ArrangeResult,
  Control,
  BarriersAndLaunches
};

// All terms, in the order of the enum.
std::span<const Term> all_terms();

// "exchange operands", as reports and plan files show it; valid as long as the program.
std::string_view to_string(Term term);

// The phase of a run in which the cost of a term shows. `buckets_travel` matters to GradW alone.
Phase phase_of(Term term, Pass pass, bool buckets_travel);

}  // namespace tessera::planner
