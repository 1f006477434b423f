#include "tessera/runtime/tile_options.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

struct Running {
  Running() : in(c()) { EXPECT_FALSE(layer.set_weights(c().weights, {.force_spills = true})); }
  static const LayerCase& c() {
    static const LayerCase the_case = [] {
      LayerCase made;
      made.weights = random_weights(30, 42, {1, 1}, 0.3, 4);
      made.partition = {1, 3, 3, 1};
      made.batch = 8;
      return made;
    }();
    return the_case;
  }
  bool forward(const layer::PassOptions& options) {
    return layer.forward<float>(in.s.view(), q.view(), options, ledger);
  }

  std::unique_ptr<Executor> executor = make_executor(1);
  FullyConnected layer{c().problem(), c().plan(), c().machine(), device::ExchangeMode::Share,
                       *executor};
  Operands<float> in;
  Matrix<float> q{30, 8};
  device::Ledger ledger;
};

TEST(Progress, IsToldBeforeEveryStepInOrder) {
  Running run;
  std::vector<std::string> steps;
  ASSERT_TRUE(run.forward({.progress = [&](const Progress& at) {
    EXPECT_EQ(at.begun, std::ssize(steps));
    steps.emplace_back(at.step);
  }}));
  std::vector<std::string> want{""};  // the load
  for (const device::StepRecord& step : run.ledger.steps)
    if (step.kind != device::StepKind::Control) want.emplace_back(to_string(step.phase));
  want.emplace_back("");  // collecting
  EXPECT_EQ(steps, want);
}

// Stopped before every step in turn, a layer gives the same result afterwards as one never stopped.
TEST(Stop, EndsThePassBeforeTheNextStepAndLeavesTheLayerAsItWas) {
  Running fresh;
  ASSERT_TRUE(fresh.forward({}));
  Running run;
  for (std::int64_t last = 0;; ++last) {
    std::stop_source source;
    std::int64_t begun = 0;
    const bool finished =
        run.forward({.stop = source.get_token(), .progress = [&](const Progress& at) {
                       begun = at.begun;
                       if (at.begun == last) source.request_stop();
                     }});
    if (finished) {
      ASSERT_GT(last, 4) << "too few steps to stop anywhere";
      break;
    }
    EXPECT_EQ(begun, last);
    Matrix<float> q(30, 8);
    device::Ledger ledger;
    ASSERT_TRUE(run.layer.forward<float>(run.in.s.view(), q.view(), {}, ledger));
    EXPECT_EQ(q.elements(), fresh.q.elements());
    EXPECT_EQ(ledger, fresh.ledger);
  }
}

// The rounds over the parts of z are a loop that a stop may leave in the middle.
TEST(Stop, InsideARoundOfTheWeightGradientLeavesNothingForTheNextRun) {
  LayerCase c = Running::c();
  c.partition = {1, 2, 2, 2};
  c.force_spills = true;
  const auto executor = make_executor(1);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
  const Operands<float> in(c);
  std::int64_t last_step = -1;  // before which the run is stopped; -1: never
  device::Ledger ledger;
  const auto gradient = [&](bool& finished) {
    std::vector<float> gradients(c.weights.values.size());
    std::stop_source source;
    const layer::PassOptions options{.stop = source.get_token(),
                                     .progress = [&](const Progress& at) {
                                       if (at.begun == last_step) source.request_stop();
                                     }};
    finished = layer.grad_w<float>(in.q_grad.view(), in.s.view(), gradients, options, ledger);
    return gradients;
  };
  bool finished = false;
  const std::vector<float> expected = gradient(finished);
  for (std::int64_t step = 0;; ++step) {
    last_step = step;
    gradient(finished);
    if (finished) {
      ASSERT_GT(step, 5) << "too few steps to stop in a round";
      break;
    }
    last_step = -1;
    EXPECT_EQ(gradient(finished), expected) << "after a stop before step " << step;
  }
}

TEST(Stop, RequestedBeforehandRunsNothing) {
  Running run;
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(run.forward({.stop = source.get_token()}));
  EXPECT_TRUE(run.ledger.steps.empty());
}

TEST(Stop, EndsTheWeightGradientTooAndLeavesTheCallersGradient) {
  Running run;
  std::vector<float> gradient = Running::c().weights.values;
  std::stop_source source;
  const layer::PassOptions options{.stop = source.get_token(), .progress = [&](const Progress& at) {
                                     if (at.begun == 2) source.request_stop();
                                   }};
  EXPECT_FALSE(run.layer.grad_w<float>(run.in.q_grad.view(), run.in.s.view(), gradient, options,
                                       run.ledger));
  EXPECT_EQ(gradient, Running::c().weights.values);
}

TEST(Progress, WhatItThrowsComesOutAndTheLayerGoesOn) {
  Running run, fresh;
  EXPECT_THROW(static_cast<void>(run.forward(
                   {.progress = [](const Progress&) { throw std::runtime_error("enough"); }})),
               std::runtime_error);
  ASSERT_TRUE(run.forward({}));
  ASSERT_TRUE(fresh.forward({}));
  EXPECT_EQ(run.q.elements(), fresh.q.elements());
}

}  // namespace
}  // namespace tessera::runtime
