// Modelled devices over ranks: the results and ledgers of one process.

#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/tests/pod/pod_case.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

struct Results {
  Matrix<float> q, s_grad;
  std::vector<float> gradients;
  std::vector<pod::PodLedger> ledgers;
  std::vector<verify::Checksums> checks;

  friend bool operator==(const Results&, const Results&) = default;
};

class PodOnRanks : public testing::Test {
 protected:
  PodOnRanks()
      : problem_(pod::make_problem({1, 24, 20, 18}, {1, 1}, 0.4, DataType::Float)),
        plan_(pod::plan_of_grid(problem_, pod::small_pod(pod::small_machine(8), 2, 4),
                                pod::PodGrid{{{.parts = {1, 2, 1, 1}}, {.parts = {1, 1, 2, 2}}}},
                                2)),
        weights_(pod::make_weights(problem_, false, 1)),
        s_(random_matrix<float>(20, 18, 2)),
        q_grad_(random_matrix<float>(24, 18, 3)) {}

  // Runs all passes. `ranks` is null for one process.
  Results run(Communicator* ranks, pod::DeviceOrder order) {
    const auto executor = make_executor(1);
    pod::PodLayer layer(plan_, device::ExchangeMode::Share, order, *executor);
    EXPECT_FALSE(layer.set_weights(weights_).has_value());
    Results out{Matrix<float>(24, 18), Matrix<float>(20, 18),
                std::vector<float>(std::size_t(layer.values())), std::vector<pod::PodLedger>(3),
                std::vector<verify::Checksums>(3)};
    pod::DeviceOptions target;
    target.ranks = ranks;
    const auto options = [&](std::size_t pass) {
      layer::PassOptions with;
      with.self_check = &out.checks[pass];
      with.target = &target;
      return with;
    };
    const auto s = std::as_const(s_).view(), q_grad = std::as_const(q_grad_).view();
    EXPECT_TRUE(layer.forward<float>(s, out.q.view(), options(0), out.ledgers[0]));
    EXPECT_TRUE(layer.grad_a<float>(q_grad, out.s_grad.view(), options(1), out.ledgers[1]));
    EXPECT_TRUE(
        layer.grad_w<float>(q_grad, s, std::span(out.gradients), options(2), out.ledgers[2]));
    return out;
  }

  Problem problem_;
  pod::PodPlan plan_;
  std::vector<sparse::CheckedCsr<float>> weights_;
  Matrix<float> s_, q_grad_;
};

TEST_F(PodOnRanks, EveryRankHasTheResultsLedgersAndChecksOfOneProcess) {
  const Results expected = run(nullptr, pod::DeviceOrder::OneAfterAnother);
  for (const int count : {1, 2, 3, 8, 11})
    run_ranks(count, [&](Communicator& ranks) {
      EXPECT_EQ(run(&ranks, ranks.rank() % 2 == 0 ? pod::DeviceOrder::OneAfterAnother
                                                  : pod::DeviceOrder::SideBySide),
                expected)
          << "rank " << ranks.rank() << " of " << count;
    });
}

TEST_F(PodOnRanks, AStopOfOneRankEndsThePassOnAll) {
  run_ranks(3, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    pod::PodLayer layer(plan_, device::ExchangeMode::Share, pod::DeviceOrder::OneAfterAnother,
                        *executor);
    EXPECT_FALSE(layer.set_weights(weights_).has_value());
    std::stop_source stop;
    if (ranks.rank() == 1) stop.request_stop();
    layer::PassOptions options;
    options.stop = stop.get_token();
    pod::DeviceOptions target;
    target.ranks = &ranks;
    options.target = &target;
    Matrix<float> q(24, 18);
    pod::PodLedger ledger;
    EXPECT_FALSE(layer.forward<float>(std::as_const(s_).view(), q.view(), options, ledger));
    target.fault.emplace();
    test::refusal([&] {
      [[maybe_unused]] const bool finished =
          layer.forward<float>(std::as_const(s_).view(), q.view(), options, ledger);
    });
  });
}

TEST_F(PodOnRanks, RanksThatRunOtherDevicesAreRefused) {
  const std::string message = test::refusal([&] {
    run_ranks(3, [&](Communicator& ranks) {
      const auto executor = make_executor(1);
      pod::PodLayer layer(plan_, device::ExchangeMode::Share, pod::DeviceOrder::OneAfterAnother,
                          *executor);
      EXPECT_FALSE(layer.set_weights(weights_).has_value());
      pod::DeviceOptions target;
      target.ranks = &ranks;
      target.devices_simulated = ranks.rank() == 0 ? 5 : 4;
      layer::PassOptions options;
      options.target = &target;
      Matrix<float> q(24, 18);
      layer.forward<float>(std::as_const(s_).view(), q.view(), options);
    });
  });
  EXPECT_NE(message.find("5, 4, 4 devices of a pod; give all ranks the same layer"),
            std::string::npos)
      << message;
}

TEST_F(PodOnRanks, RanksWithOtherResultsAreRefused) {
  const std::string message = test::refusal([&] {
    run_ranks(2, [&](Communicator& ranks) {
      Problem problem = problem_;
      if (ranks.rank() == 1) problem.size.z = 10;
      const pod::PodPlan plan = pod::plan_of_grid(problem, plan_.pod, plan_.grid, 2);
      const auto executor = make_executor(1);
      pod::PodLayer layer(plan, device::ExchangeMode::Share, pod::DeviceOrder::OneAfterAnother,
                          *executor);
      EXPECT_FALSE(layer.set_weights(weights_).has_value());
      pod::DeviceOptions target;
      target.ranks = &ranks;
      layer::PassOptions options;
      options.target = &target;
      Matrix<float> s(20, problem.size.z), q(24, problem.size.z);
      layer.forward<float>(std::as_const(s).view(), q.view(), options);
    });
  });
  EXPECT_NE(message.find("has other results; give all ranks the same layer"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace tessera::distributed
