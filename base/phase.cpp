#include "tessera/base/phase.hpp"

#include <ostream>

#include "tessera/base/error.hpp"

namespace tessera {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::RehomeValues:
      return "re-home values";
    case Phase::TransposeOperand:
      return "transpose operand";
    case Phase::Arrange:
      return "arrange";
    case Phase::Transpose:
      return "transpose values";
    case Phase::PreArrange:
      return "exchange operands";
    case Phase::Rearrange:
      return "rearrange operands";
    case Phase::Distribute:
      return "multiply";
    case Phase::Propagate:
      return "propagate";
    case Phase::Control:
      return "control";
    case Phase::Reduce:
      return "reduce";
    case Phase::Cast:
      return "cast sums";
    case Phase::HandOver:
      return "hand over";
    case Phase::Activate:
      return "activate";
    case Phase::Loss:
      return "loss";
    case Phase::Update:
      return "update";
    case Phase::Overhead:
      return "barriers and launches";
  }
  assertion_failed("every phase has a name", __FILE__, __LINE__);
}

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::Compute:
      return "compute";
    case StepKind::Exchange:
      return "exchange";
    case StepKind::Control:
      return "control";
  }
  assertion_failed("every kind of step has a name", __FILE__, __LINE__);
}

std::ostream& operator<<(std::ostream& out, Phase phase) { return out << to_string(phase); }
std::ostream& operator<<(std::ostream& out, StepKind kind) { return out << to_string(kind); }

}  // namespace tessera
