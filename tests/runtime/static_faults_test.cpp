#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/runtime/static_case.hpp"
#include "tessera/tests/support/message_of.hpp"

// Options of the passes of a layer with a static pattern.
namespace tessera::runtime {
namespace {

sparse::Csr<float> some_matrix(std::uint64_t seed, std::int64_t block) {
  Random random(seed);
  return planner::random_matrix(random, 24, 20, block, 0.3);
}

std::vector<StaticCase> some_cases() {
  std::vector<StaticCase> cases;
  cases.push_back(static_case(some_matrix(1, 1), 24, DataType::Float, 16));
  cases.push_back(static_case(some_matrix(2, 4), 64, DataType::Float, 8));
  return cases;
}

TEST(StaticOptions, ReportEveryStepAndStopBeforeTheNext) {
  const StaticCase c = some_cases()[0];
  const auto executor = make_executor(1);
  StaticLayer layer = c.layer(*executor);
  const auto s = static_operand<float>(c.problem.size.y, 24, Values::Any, 1);
  Matrix<float> q(c.problem.size.x, 24);
  device::Ledger ledger;
  std::int64_t steps = 0;
  PassOptions options{.progress = [&](const verify::Progress&) { ++steps; }};
  EXPECT_TRUE(layer.forward<float>(s.view(), q.view(), options, ledger));
  EXPECT_GE(steps, std::ssize(ledger.steps));
  std::stop_source stop;
  std::int64_t begun = 0;
  options = {.stop = stop.get_token(), .progress = [&](const verify::Progress&) {
               if (++begun == 2) stop.request_stop();
             }};
  EXPECT_FALSE(layer.forward<float>(s.view(), q.view(), options, ledger));
  EXPECT_EQ(begun, 2);
}

// Runs every pass with a self-check; both modes have the same outcome.
TEST(StaticOptions, CheckThemselves) {
  for (const StaticCase& c : some_cases())
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
      const auto executor = make_executor(2);
      StaticLayer layer = c.layer(*executor, mode);
      verify::Checksums sums;
      device::TileLedger tiles;
      TilePass options;
      options.pass.self_check = &sums;
      options.tiles.tiles = &tiles;
      run_all<float>(c, layer, Values::Any, options);
      EXPECT_TRUE(sums.ok());
      EXPECT_GT(sums.compared, 0);
      EXPECT_EQ(sums.damaged, 0);
      EXPECT_FALSE(tiles.steps.empty());
    }
}

// Flips bits all over the memory of tiles in every step: a pass either notices, or its results are
// within their bounds. No flip leads a kernel out of its memory.
TEST(StaticOptions, NoticeFlippedBitsThatChangeResults) {
  std::int64_t noticed = 0, struck = 0;
  for (const StaticCase& c : some_cases()) {
    const auto executor = make_executor(1);
    StaticLayer layer = c.layer(*executor, device::ExchangeMode::Isolate);
    const auto s = static_operand<float>(c.problem.size.y, c.problem.size.z, Values::Any, 1);
    const auto q_grad = static_operand<float>(c.problem.size.x, c.problem.size.z, Values::Any, 2);
    Matrix<float> q(c.problem.size.x, c.problem.size.z), s_grad(c.problem.size.y, c.problem.size.z);
    std::vector<float> gradients(std::size_t(layer.values()));
    device::Ledger ledger;
    Random random(3);
    for (int trial = 0; trial < 150; ++trial) {
      verify::Checksums sums;
      std::optional<device::Struck> place;
      TilePass options;
      options.pass.self_check = &sums;
      options.tiles.fault =
          device::Fault{TileId(random.below(8)), random.below(5), random.below(40000)};
      options.tiles.struck = &place;
      try {
        if (trial % 3 == 0)
          static_cast<void>(layer.forward<float>(s.view(), q.view(), options, ledger));
        else if (trial % 3 == 1)
          static_cast<void>(layer.grad_a<float>(q_grad.view(), s_grad.view(), options, ledger));
        else
          static_cast<void>(
              layer.grad_w<float>(q_grad.view(), s.view(), std::span(gradients), options, ledger));
        noticed += sums.damaged > 0;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::CheckFailed) << error.what();
        ++noticed;
      }
      struck += place.has_value();
    }
  }
  EXPECT_GT(struck, 50);
  EXPECT_GE(noticed, struck * 9 / 10);
}

TEST(StaticOptions, RepairAPassWithAFault) {
  const StaticCase c = some_cases()[1];
  const auto executor = make_executor(1);
  StaticLayer layer = c.layer(*executor, device::ExchangeMode::Isolate);
  const auto s = static_operand<float>(c.problem.size.y, 64, Values::Any, 1);
  Matrix<float> expected(c.problem.size.x, 64), q(c.problem.size.x, 64);
  layer.forward<float>(s.view(), expected.view());
  device::Ledger ledger;
  std::int64_t repaired = 0;
  for (std::int64_t bit = 30; bit < 40000; bit += 32 * 61) {
    verify::Checksums sums;
    TilePass options;
    options.pass.self_check = &sums;
    options.pass.repair = true;
    options.tiles.fault = device::Fault{TileId(0), 2, bit};
    EXPECT_TRUE(layer.forward<float>(s.view(), q.view(), options, ledger));
    repaired += !sums.first_failure.empty();
    if (!sums.first_failure.empty()) {
      EXPECT_TRUE(std::ranges::equal(q.elements(), expected.elements()));
    }
  }
  EXPECT_GT(repaired, 0);
}

}  // namespace
}  // namespace tessera::runtime
