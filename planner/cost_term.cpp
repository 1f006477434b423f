#include "tessera/planner/cost_term.hpp"

#include <array>
#include <ostream>

namespace tessera::planner {
namespace {

struct TermFacts {
  std::string_view name;
  Phase phase;  // but for those that phase_of() tells apart
};

// In the order of the enum.
constexpr std::array kTermFacts{TermFacts{"re-home values", Phase::RehomeValues},
                                TermFacts{"transpose operand", Phase::TransposeOperand},
                                TermFacts{"arrange operands", Phase::Arrange},
                                TermFacts{"transpose values", Phase::Transpose},
                                TermFacts{"exchange operands", Phase::PreArrange},
                                TermFacts{"rearrange operands", Phase::Rearrange},
                                TermFacts{"exchange along z", Phase::Distribute},
                                TermFacts{"multiply", Phase::Distribute},
                                TermFacts{"propagate", Phase::Propagate},
                                TermFacts{"exchange sums", Phase::Reduce},
                                TermFacts{"reduce sums", Phase::Reduce},
                                TermFacts{"room for sums", Phase::Reduce},
                                TermFacts{"cast sums", Phase::Reduce},
                                TermFacts{"arrange result", Phase::Arrange},
                                TermFacts{"control", Phase::Control},
                                TermFacts{"barriers and launches", Phase::Overhead}};
static_assert(kTermFacts.size() == std::size_t(Term::BarriersAndLaunches) + 1);

constexpr auto kTerms = [] {
  std::array<Term, kTermFacts.size()> terms{};
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = Term(i);
  return terms;
}();

}  // namespace

std::span<const Term> all_terms() { return kTerms; }

std::string_view to_string(Term term) { return kTermFacts.at(std::size_t(term)).name; }

std::ostream& operator<<(std::ostream& out, Term term) { return out << to_string(term); }

Phase phase_of(Term term, Pass pass, bool buckets_travel) {
  if (term == Term::ExchangeAlongZ && buckets_travel) return Phase::Propagate;
  const bool is_cast = term == Term::RoomForSums || term == Term::CastSums;
  if (is_cast && pass == Pass::GradW) return Phase::Cast;
  return kTermFacts.at(std::size_t(term)).phase;
}

}  // namespace tessera::planner
