// Devices of a modelled pod that are spread over ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/tests/pod/pod_case.hpp"
#include "tessera/tests/support/layer_results.hpp"

namespace tessera::distributed {
namespace {

using pod::DeviceOrder;
using testing::HasSubstr;

pod::DeviceRanks device_ranks(Communicator& ranks) {
  return {ranks.rank(), ranks.size(),
          [&](std::string_view what, const std::vector<std::byte>& own) {
            return gather_lists(ranks, what, own);
          }};
}

// Twelve devices with unequal parts of everything, and the batch in two serial parts.
pod::PodPlan small_plan() {
  const Problem problem = pod::make_problem({1, 40, 36, 14}, {4, 4}, 0.4, DataType::Half);
  return pod::plan_of_grid(problem, pod::small_pod(pod::small_machine(5), 2, 6),
                           {{{{1, 1, 2, 1}}, {{1, 2, 1, 3}}}}, 2);
}

// All that a rank knows after three passes with checks.
struct Known {
  test::Results<Half> results;
  std::vector<pod::PodLedger> ledgers;
  std::vector<verify::Checksums> checksums;
  Bytes high_water;

  friend bool operator==(const Known&, const Known&) = default;
};

Known run(const pod::PodPlan& plan, DeviceOrder order, const pod::DeviceRanks& ranks) {
  const auto executor = make_executor(1);
  pod::PodLayer layer(plan, device::ExchangeMode::Share, order, *executor, ranks);
  EXPECT_FALSE(layer.set_weights(pod::make_weights(plan.problem, false, 3)).has_value());
  const auto s = pod::make_operand<Half>(36, 14, false, 4);
  const auto q_grad = pod::make_operand<Half>(40, 14, false, 5);
  Known known{test::zero_results<Half>(layer, s.view(), q_grad.view()),
              std::vector<pod::PodLedger>(3), std::vector<verify::Checksums>(3),
              layer.high_water()};
  const auto options = [&](int pass) {
    pod::PodRunOptions with;
    with.self_check = &known.checksums[std::size_t(pass)];
    return with;
  };
  EXPECT_TRUE(layer.forward<Half>(s.view(), known.results.q.view(), options(0), known.ledgers[0]));
  EXPECT_TRUE(
      layer.grad_a<Half>(q_grad.view(), known.results.s_grad.view(), options(1), known.ledgers[1]));
  EXPECT_TRUE(layer.grad_w<Half>(q_grad.view(), s.view(), known.results.gradients, options(2),
                                 known.ledgers[2]));
  return known;
}

TEST(PodRanks, HaveTheResultsLedgersAndChecksumsOfOneProcess) {
  const pod::PodPlan plan = small_plan();
  const Known one = run(plan, DeviceOrder::OneAfterAnother, {});
  for (const int count : {2, 3, 5, 13})
    for (const auto order : {DeviceOrder::OneAfterAnother, DeviceOrder::SideBySide}) {
      std::vector<Known> known(std::size_t(count), one);
      run_ranks(count, [&](Communicator& ranks) {
        known[std::size_t(ranks.rank())] = run(plan, order, device_ranks(ranks));
        // A rank that runs fewer devices receives more of them.
        EXPECT_GT(ranks.traffic().received_bytes, 0);
      });
      for (const Known& rank : known) EXPECT_EQ(rank, one) << count;
    }
}

TEST(PodRanks, AllNameTheFirstDeviceThatDoesNotFit) {
  const pod::PodPlan plan = small_plan();
  Problem full = plan.problem;
  full.density = 1;
  std::vector<std::string> messages(4);
  const auto message_of = [&](const pod::DeviceRanks& ranks) {
    const auto executor = make_executor(1);
    pod::PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::SideBySide, *executor,
                        ranks);
    const auto misfit = layer.set_weights(pod::make_weights(full, false, 3));
    return misfit ? misfit->message : "";
  };
  const std::string expected = message_of({});
  EXPECT_THAT(expected, HasSubstr("the non-zeros do not fit"));
  run_ranks(4, [&](Communicator& ranks) {
    messages[std::size_t(ranks.rank())] = message_of(device_ranks(ranks));
  });
  EXPECT_THAT(messages, testing::Each(expected));
}

// Returns the places that a fault before each of the first steps strikes on a device.
std::vector<std::string> struck_places(const pod::DeviceRanks& ranks) {
  const pod::PodPlan plan = small_plan();
  const auto executor = make_executor(1);
  pod::PodLayer layer(plan, device::ExchangeMode::Isolate, DeviceOrder::OneAfterAnother, *executor,
                      ranks);
  EXPECT_FALSE(layer.set_weights(pod::make_weights(plan.problem, false, 3)).has_value());
  const auto s = pod::make_operand<Half>(36, 14, false, 4);
  Matrix<Half> q(40, 14);
  std::vector<std::string> places;
  for (const std::int64_t step : {0, 1, 2, 3}) {
    pod::PodLedger ledger;
    pod::PodRunOptions options;
    std::optional<pod::DeviceStruck> struck;
    options.fault = pod::DeviceFault{layer.places()[7].device, {TileId(0), step, 9}};
    options.struck = &struck;
    EXPECT_TRUE(layer.forward<Half>(s.view(), q.view(), options, ledger));
    places.push_back(struck ? struck->slot + " " + std::to_string(struck->byte) : "nowhere");
  }
  return places;
}

TEST(PodRanks, AllKnowWhereAFaultStruck) {
  const std::vector<std::string> expected = struck_places({});
  EXPECT_THAT(expected, testing::Contains(HasSubstr(" 1")));
  std::vector<std::vector<std::string>> known(3);
  run_ranks(3, [&](Communicator& ranks) {
    known[std::size_t(ranks.rank())] = struck_places(device_ranks(ranks));
  });
  EXPECT_THAT(known, testing::Each(expected));
}

TEST(PodRanks, RefuseNumbersThatAreNotRanks) {
  const auto executor = make_executor(1);
  const auto make = [&](pod::DeviceRanks ranks) {
    pod::PodLayer(small_plan(), device::ExchangeMode::Share, DeviceOrder::SideBySide, *executor,
                  std::move(ranks));
  };
  EXPECT_THROW(make({2, 2, {}}), Error);
  EXPECT_THROW(make({0, 2, {}}), Error) << "no function that gathers";
  EXPECT_THROW(make({-1, 1, {}}), Error);
}

}  // namespace
}  // namespace tessera::distributed
