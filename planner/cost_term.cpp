#include "tessera/planner/cost_term.hpp"

#include <algorithm>
#include <array>

#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

struct TermFacts {
  Term term;
  std::string_view name;
  Phase phase;  // but for those that phase_of() tells apart
};

// In the order of the enum.
constexpr std::array kTermFacts{
    TermFacts{Term::RehomeValues, "re-home values", Phase::RehomeValues},
    TermFacts{Term::TransposeOperand, "transpose operand", Phase::TransposeOperand},
    TermFacts{Term::ArrangeOperands, "arrange operands", Phase::Arrange},
    TermFacts{Term::TransposeValues, "transpose values", Phase::Transpose},
    TermFacts{Term::ExchangeOperands, "exchange operands", Phase::PreArrange},
    TermFacts{Term::RearrangeOperands, "rearrange operands", Phase::Rearrange},
    TermFacts{Term::ExchangeAlongZ, "exchange along z", Phase::Distribute},
    TermFacts{Term::Multiply, "multiply", Phase::Distribute},
    TermFacts{Term::Propagate, "propagate", Phase::Propagate},
    TermFacts{Term::ExchangeSums, "exchange sums", Phase::Reduce},
    TermFacts{Term::ReduceSums, "reduce sums", Phase::Reduce},
    TermFacts{Term::RoomForSums, "room for sums", Phase::Reduce},
    TermFacts{Term::CastSums, "cast sums", Phase::Reduce},
    TermFacts{Term::ArrangeResult, "arrange result", Phase::Arrange},
    TermFacts{Term::Control, "control", Phase::Control},
    TermFacts{Term::BarriersAndLaunches, "barriers and launches", Phase::Overhead}};
static_assert(kTermFacts.size() == std::size_t(Term::BarriersAndLaunches) + 1);
static_assert(std::ranges::all_of(kTermFacts, [at = std::size_t(0)](const TermFacts& f) mutable {
  return std::size_t(f.term) == at++;
}));

constexpr auto kTerms = [] {
  std::array<Term, kTermFacts.size()> terms{};
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = kTermFacts[i].term;
  return terms;
}();

const TermFacts& facts_of(Term term) {
  TESSERA_ASSERT(std::size_t(term) < kTermFacts.size());
  return kTermFacts[std::size_t(term)];
}

}  // namespace

std::span<const Term> all_terms() { return kTerms; }

std::string_view to_string(Term term) { return facts_of(term).name; }

Phase phase_of(Term term, Pass pass, bool buckets_travel) {
  if (term == Term::ExchangeAlongZ && buckets_travel) return Phase::Propagate;
  const bool is_cast = term == Term::RoomForSums || term == Term::CastSums;
  if (is_cast && pass == Pass::GradW) return Phase::Cast;
  return facts_of(term).phase;
}

}  // namespace tessera::planner
