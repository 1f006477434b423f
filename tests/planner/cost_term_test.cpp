#include "tessera/planner/cost_term.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "tessera/base/pass_steps.hpp"

namespace tessera::planner {
namespace {

TEST(Term, HasANameOfItsOwnAndAPlaceInTheList) {
  std::set<std::string_view> names;
  for (const Term term : all_terms()) names.insert(to_string(term));
  EXPECT_EQ(names.size(), all_terms().size());
  for (std::size_t i = 0; i < all_terms().size(); ++i) EXPECT_EQ(std::size_t(all_terms()[i]), i);
  EXPECT_EQ(all_terms().back(), Term::BarriersAndLaunches) << "the last of the enumerators";
}

// A column of a report adds up the terms of a phase; none may be left without terms.
TEST(Term, GivesEveryStepOfEveryPassAPlannedFigure) {
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    for (const bool buckets : {false, true}) {
      std::set<Phase> planned;
      for (const Term term : all_terms()) planned.insert(phase_of(term, pass, buckets));
      EXPECT_TRUE(planned.contains(Phase::Overhead));
      const PassForm form{.pass = pass,
                          .parts = {1, 2, 2, 2},
                          .transposes = pass == Pass::GradA,
                          .fetches = true,
                          .rearranges = pass == Pass::GradW,
                          .buckets_travel = buckets,
                          .casts = true};
      for (const auto& [phase, kind] : step_order(form))
        EXPECT_TRUE(planned.contains(phase)) << to_string(pass) << " " << phase;
    }
}

// The two lists of names beside each other. A phase has the name of its term, or it has several
// terms and a name that none of them has.
TEST(Term, SharesItsNameWithItsPhaseUnlessThePhaseHasSeveral) {
  const std::map<Phase, std::set<Term>> of_several = {
      {Phase::Arrange, {Term::ArrangeOperands, Term::ArrangeResult}},
      {Phase::Reduce, {Term::ExchangeSums, Term::ReduceSums, Term::RoomForSums, Term::CastSums}}};
  // Operands that go round along z are part of the turns in which they are multiplied or passed on,
  // and the memory for sums is no step at all.
  const std::set<Term> have_no_step = {Term::ExchangeAlongZ, Term::RoomForSums};
  std::set<std::string_view> names;
  for (const Term term : all_terms()) names.insert(to_string(term));
  for (const auto& [phase, terms] : of_several) EXPECT_FALSE(names.contains(to_string(phase)));
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    for (const bool buckets : {false, true})
      for (const Term term : all_terms()) {
        const Phase phase = phase_of(term, pass, buckets);
        const auto group = of_several.find(phase);
        if (group != of_several.end()) {
          EXPECT_TRUE(group->second.contains(term)) << to_string(term) << " " << phase;
        } else if (!have_no_step.contains(term)) {
          EXPECT_EQ(to_string(term), to_string(phase));
        }
      }
}

TEST(Term, IsPlannedForThePhaseInWhichItRuns) {
  EXPECT_EQ(phase_of(Term::ExchangeAlongZ, Pass::GradW, true), Phase::Propagate);
  EXPECT_EQ(phase_of(Term::ExchangeAlongZ, Pass::GradW, false), Phase::Distribute);
  EXPECT_EQ(phase_of(Term::CastSums, Pass::GradW, false), Phase::Cast);
  EXPECT_EQ(phase_of(Term::CastSums, Pass::Fwd, false), Phase::Reduce);
  EXPECT_EQ(phase_of(Term::ReduceSums, Pass::GradA, false), Phase::Reduce);
}

}  // namespace
}  // namespace tessera::planner
