#include "tessera/report/host_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"

namespace tessera::report {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const host::HostCpu kCpu{
    .cores = 3, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(32 << 20)};

Problem problem(BlockShape block = {}, std::int64_t groups = 1) {
  return {.size = {groups, 256, 512, 64},
          .block = block,
          .density = 0.1,
          .grad_a = true,
          .grad_w = true};
}

double blocks_as(BlockShape block) { return 256.0 * 512 * 0.1 / double(block.area()); }

HostPlan plan_of(const Problem& p) {
  return plan_on_host(
      p, kCpu, {host::default_host_rates(), "default ones", host::RatesOrigin::Default}, blocks_as);
}

std::vector<std::string> names(const HostPlan& plan) {
  std::vector<std::string> all;
  for (const HostWay& way : plan.ways) all.push_back(way.name());
  return all;
}

TEST(HostPlan, HoldsRAsItIsInLargerBlocksThatItsOwnDivideAndDense) {
  EXPECT_THAT(names(plan_of(problem())), ElementsAre("1x1", "4x4", "8x8", "16x16", "dense"));
  EXPECT_THAT(names(plan_of(problem({8, 8}))), ElementsAre("8x8", "16x16", "dense"));
  EXPECT_THAT(names(plan_of(problem({2, 4}))), ElementsAre("2x4", "4x4", "8x8", "16x16", "dense"));
  EXPECT_THAT(names(plan_of(problem({3, 5}))), ElementsAre("3x5", "dense"));
}

TEST(HostPlan, SaysWhatTheCostModelSaysForAllCores) {
  const HostPlan plan = plan_of(problem());
  const host::HostSetting setting{kCpu, 3, plan.found.rates};
  const host::HostProblem eights{
      {1, 256, 512, 64}, {8, 8}, std::int64_t(blocks_as({8, 8})), problem().data_type};
  const HostWay& way = plan.ways[2];
  ASSERT_EQ(way.passes.size(), 3u);
  double seconds = 0;
  for (const auto& [pass, forecast] : way.passes) {
    EXPECT_DOUBLE_EQ(forecast.seconds(), forecast_sparse(pass, eights, setting).seconds());
    seconds += forecast.seconds();
  }
  EXPECT_DOUBLE_EQ(way.seconds(), seconds);
  EXPECT_EQ(plan.threads, 3);
  for (const HostWay& other : plan.ways) EXPECT_LE(plan.fastest().seconds(), other.seconds());
}

TEST(HostPlan, OfThreeGroupsTakesThreeTimesAsLongWithTheSameCells) {
  const HostPlan one = plan_of(problem()), three = plan_of(problem({}, 3));
  ASSERT_EQ(one.ways.size(), three.ways.size());
  for (std::size_t i = 0; i < one.ways.size(); ++i)
    EXPECT_NEAR(three.ways[i].seconds(), 3 * one.ways[i].seconds(), 1e-12) << one.ways[i].name();
  EXPECT_EQ(three.cells, one.cells);
}

TEST(HostPlan, HasOnlyThePassesOfTheProblem) {
  Problem p = problem();
  p.grad_a = false;
  const HostPlan plan = plan_of(p);
  ASSERT_EQ(plan.cells.size(), 2u);
  EXPECT_EQ(plan.cells[1].first, Pass::GradW);
  EXPECT_EQ(plan.ways.back().passes.size(), 2u);
}

TEST(HostPlan, IsTheSameInTextAndJson) {
  const HostPlan plan = plan_of(problem());
  const json document = json::parse(to_json(plan));
  EXPECT_EQ(document["fastest"], plan.fastest().name());
  EXPECT_EQ(document["rates"]["origin"], "default");
  EXPECT_EQ(document["notes"], json::array({"default ones"}));
  const std::string text = to_text(plan);
  EXPECT_THAT(text, testing::StartsWith("note       default ones\n"));
  EXPECT_THAT(text, HasSubstr("\nfastest: " + plan.fastest().name() + ", "));
  ASSERT_EQ(document["ways"].size(), plan.ways.size());
  for (std::size_t i = 0; i < plan.ways.size(); ++i) {
    const json& way = document["ways"][i];
    EXPECT_EQ(way["forecast_seconds"], plan.ways[i].seconds());
    for (std::size_t p = 0; p < plan.ways[i].passes.size(); ++p)
      EXPECT_EQ(way["passes"][p]["kernel_seconds"], plan.ways[i].passes[p].second.kernel_seconds);
    EXPECT_THAT(text, HasSubstr("\n" + plan.ways[i].name()));
  }
  EXPECT_EQ(document["passes"][0]["cells"]["outputs"], plan.cells[0].second.x);
}

}  // namespace
}  // namespace tessera::report
