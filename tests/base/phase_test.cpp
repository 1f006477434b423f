#include "tessera/base/phase.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "tessera/base/dims.hpp"

namespace tessera {
namespace {

constexpr Phase kPhases[] = {Phase::RehomeValues, Phase::TransposeOperand,
                             Phase::Arrange,      Phase::Transpose,
                             Phase::PreArrange,   Phase::Rearrange,
                             Phase::Distribute,   Phase::Propagate,
                             Phase::Control,      Phase::Reduce,
                             Phase::Cast,         Phase::HandOver,
                             Phase::Activate,     Phase::Loss,
                             Phase::Update,       Phase::Overhead};

TEST(Phase, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Phase phase : kPhases) names.insert(to_string(phase));
  EXPECT_EQ(names.size(), std::size(kPhases));
  EXPECT_EQ(to_string(Phase::PreArrange), "exchange operands");
  EXPECT_EQ(to_string(Phase::RehomeValues), "re-home values");
  EXPECT_EQ(to_string(Phase::Overhead), "barriers and launches");
}

TEST(StepKind, HasANameOfItsOwn) {
  EXPECT_EQ(to_string(StepKind::Compute), "compute");
  EXPECT_EQ(to_string(StepKind::Exchange), "exchange");
  EXPECT_EQ(to_string(StepKind::Control), "control");
}

TEST(Axis, IsNamedAsInFormulas) {
  EXPECT_EQ(to_string(Axis::X), "x");
  EXPECT_EQ(to_string(Axis::Y), "y");
  EXPECT_EQ(to_string(Axis::Z), "z");
}

}  // namespace
}  // namespace tessera
