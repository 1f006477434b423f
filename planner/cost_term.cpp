#include "tessera/planner/cost_term.hpp"

#include <ostream>

#include "tessera/base/error.hpp"

namespace tessera::planner {

std::string_view to_string(Term term) {
  switch (term) {
    case Term::RehomeValues:
      return "re-home values";
    case Term::TransposeOperand:
      return "transpose operand";
    case Term::ArrangeOperands:
      return "arrange operands";
    case Term::TransposeValues:
      return "transpose values";
    case Term::ExchangeOperands:
      return "exchange operands";
    case Term::RearrangeOperands:
      return "rearrange operands";
    case Term::ExchangeAlongZ:
      return "exchange along z";
    case Term::Multiply:
      return "multiply";
    case Term::Propagate:
      return "propagate";
    case Term::ExchangeSums:
      return "exchange sums";
    case Term::ReduceSums:
      return "reduce sums";
    case Term::RoomForSums:
      return "room for sums";
    case Term::CastSums:
      return "cast sums";
    case Term::ArrangeResult:
      return "arrange result";
    case Term::Control:
      return "control";
    case Term::BarriersAndLaunches:
      return "barriers and launches";
  }
  assertion_failed("every term has a name", __FILE__, __LINE__);
}

std::ostream& operator<<(std::ostream& out, Term term) { return out << to_string(term); }

Phase phase_of(Term term, Pass pass, bool buckets_travel) {
  switch (term) {
    case Term::RehomeValues:
      return Phase::RehomeValues;
    case Term::TransposeOperand:
      return Phase::TransposeOperand;
    case Term::ArrangeOperands:
    case Term::ArrangeResult:
      return Phase::Arrange;
    case Term::TransposeValues:
      return Phase::Transpose;
    case Term::ExchangeOperands:
      return Phase::PreArrange;
    case Term::RearrangeOperands:
      return Phase::Rearrange;
    case Term::ExchangeAlongZ:
      return buckets_travel ? Phase::Propagate : Phase::Distribute;
    case Term::Multiply:
      return Phase::Distribute;
    case Term::Propagate:
      return Phase::Propagate;
    case Term::ExchangeSums:
    case Term::ReduceSums:
      return Phase::Reduce;
    case Term::RoomForSums:
    case Term::CastSums:
      return pass == Pass::GradW ? Phase::Cast : Phase::Reduce;
    case Term::Control:
      return Phase::Control;
    case Term::BarriersAndLaunches:
      return Phase::Overhead;
  }
  assertion_failed("every term has its phase", __FILE__, __LINE__);
}

}  // namespace tessera::planner
