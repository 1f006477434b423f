#include "tessera/base/pass_steps.hpp"

#include <gtest/gtest.h>

// The table of steps, counted by hand.
namespace tessera {
namespace {

constexpr StepCounts counts(const PassForm& form) { return counts_of(form); }

TEST(PassSteps, OnOneTileAreTheProductAlone) {
  EXPECT_EQ(counts({.parts = {1, 1, 1, 1}}), (StepCounts{0, 1, 0}));
  EXPECT_EQ(counts({.parts = {1, 1, 1, 1}, .casts = true}), (StepCounts{0, 2, 0}));
}

// Operands come, sums are exchanged: two barriers. Product and sums are two launches.
TEST(PassSteps, OfACutForwardPassAskOnce) {
  EXPECT_EQ(counts({.parts = {1, 2, 2, 3}, .fetches = true}), (StepCounts{2, 2, 1}));
  EXPECT_EQ(counts({.parts = {1, 2, 1, 3}, .fetches = true}), (StepCounts{1, 1, 1}));
  EXPECT_EQ(counts({.parts = {1, 1, 1, 3}, .fetches = true}), (StepCounts{1, 1, 0}));
}

// A cut result is reduced and cast in one step.
TEST(PassSteps, CastNotTwice) {
  for (const bool casts : {false, true})
    EXPECT_EQ(counts({.parts = {1, 1, 2, 1}, .casts = casts}), (StepCounts{1, 2, 1}));
}

TEST(PassSteps, TransposeAndRearrangeWithALaunchEach) {
  EXPECT_EQ(counts({.pass = Pass::GradA, .parts = {1, 1, 1, 1}, .transposes = true}).launches, 2);
  EXPECT_EQ(counts({.pass = Pass::GradW, .parts = {1, 1, 1, 1}, .rearranges = true}).launches, 2);
}

// A round is an exchange and a product; a whole batch needs no exchange.
TEST(PassSteps, OfTravellingOperandsHaveARoundForEveryPartOfTheBatch) {
  const PassForm form{.pass = Pass::GradW, .parts = {1, 2, 1, 4}, .fetches = true};
  EXPECT_EQ(counts(form), (StepCounts{1 + 4, 4, 1}));
  EXPECT_EQ(counts({.pass = Pass::GradW, .parts = {1, 2, 1, 1}, .casts = true}),
            (StepCounts{0, 2, 1}));
}

// Three moves out and one home; the first question begins the circle, the second ends it.
TEST(PassSteps, OfTravellingBucketsCircleOnceAlongZ) {
  PassForm form{.pass = Pass::GradW, .parts = {1, 2, 1, 4}, .buckets_travel = true};
  EXPECT_EQ(counts(form), (StepCounts{4, 4, 2}));
  form.parts.z = 1;
  EXPECT_EQ(counts(form), (StepCounts{0, 1, 1}));
  form.parts.x = 1;
  EXPECT_EQ(counts(form), (StepCounts{0, 1, 0}));
}

// In every round operands come and sums are exchanged; copying, multiplying and adding are
// launches.
TEST(PassSteps, OfADenseProductRepeatInEveryRound) {
  PassForm form{.parts = {1, 4, 2, 3}, .fetches = true, .dense_rounds = 5};
  EXPECT_EQ(counts(form), (StepCounts{5 * 2, 5 * 3, 0}));
  form.parts.y = 1;
  EXPECT_EQ(counts(form), (StepCounts{5, 5 * 2, 0}));
  form.casts = true;
  EXPECT_EQ(counts(form), (StepCounts{5, 5 * 3, 0}));
}

TEST(PassSteps, ArrangeSpreadOperandsFirstAndASpreadResultLast) {
  const StepOrder order = step_order(
      {.parts = {1, 1, 1, 1}, .fetches = true, .arranges_operands = true, .arranges_result = true});
  const StepOrder expected = {{Phase::Arrange, StepKind::Compute},
                              {Phase::PreArrange, StepKind::Exchange},
                              {Phase::Distribute, StepKind::Compute},
                              {Phase::Arrange, StepKind::Compute}};
  EXPECT_EQ(order, expected);
}

TEST(PassSteps, ListWhatRunsForSpilledValuesAlone) {
  const StepOrder order = step_order({.parts = {1, 2, 2, 1}, .fetches = true});
  const StepOrder expected = {
      {Phase::PreArrange, StepKind::Exchange}, {Phase::Distribute, StepKind::Compute},
      {Phase::Control, StepKind::Control},     {Phase::Propagate, StepKind::Exchange},
      {Phase::Propagate, StepKind::Compute},   {Phase::Reduce, StepKind::Exchange},
      {Phase::Reduce, StepKind::Compute}};
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace tessera
