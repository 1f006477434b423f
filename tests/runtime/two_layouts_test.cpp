#include "tessera/tests/runtime/two_layouts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/verify.hpp"

// Plans whose GradA has a layout of its own.
namespace tessera::runtime {
namespace {

template <class T>
void expect_right(const TwoLayouts& two, FullyConnected& layer) {
  const Dims size = two.problem.size;
  const auto s = random_matrix<T>(size.y, size.z, 5), dq = random_matrix<T>(size.x, size.z, 6);
  Matrix<T> q(size.x, size.z), ds(size.y, size.z);
  const auto rounding = [&](Pass pass) {
    return verify::Rounding{two.problem.data_type, two.problem.partials_type,
                            partial_sums(two.plan, pass)};
  };
  const sparse::Csr<float>& weights = layer.weights();
  layer.forward<T>(s.view(), q.view());
  EXPECT_EQ(to_string(verify::verify_product<T>(weights, s.view(), std::as_const(q).view(),
                                                rounding(Pass::Fwd)))
                .substr(0, 2),
            "ok");
  const device::Ledger ledger = layer.grad_a<T>(dq.view(), ds.view());
  EXPECT_EQ(ledger.phases().front().phase, Phase::RehomeValues);
  EXPECT_GE(ledger.phases().front().steps, 2);
  EXPECT_GT(ledger.phases().front().moved, Bytes());
  EXPECT_EQ(to_string(verify::verify_product<T>(sparse::transpose(weights), dq.view(),
                                                std::as_const(ds).view(), rounding(Pass::GradA)))
                .substr(0, 2),
            "ok");
  sparse::Csr<float> gradient = layer.weights();
  layer.grad_w<T>(dq.view(), s.view(), gradient.values);
  EXPECT_EQ(to_string(verify::verify_gradient<T>(weights, gradient, dq.view(), s.view(),
                                                 rounding(Pass::GradW)))
                .substr(0, 2),
            "ok");
}

TEST(TwoLayouts, HaveBucketsOfEachPass) {
  const TwoLayouts two =
      two_layouts({.size = {1, 64, 96, 11}, .density = 0.2}, /*grad_w_there=*/true, 24);
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Isolate,
                       *executor);
  ASSERT_FALSE(layer.set_weights(sparse::random_pattern(64, 96, {1, 1}, 0.2, 3)));
  EXPECT_EQ(&layer.buckets_of(Pass::Fwd), &layer.buckets());
  const Dims own = layer.buckets_of(Pass::GradA).grid.size;
  EXPECT_EQ(own.x, 96);
  EXPECT_EQ(own.y, 64);
  EXPECT_EQ(&layer.buckets_of(Pass::GradW), &layer.buckets_of(Pass::GradA));
}

TEST(TwoLayouts, GiveRightResultsInAllPasses) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{8, 4}})
    for (const bool grad_w_there : {false, true})
      for (const DataType type : {DataType::Float, DataType::Half}) {
        const TwoLayouts two = two_layouts(
            {.size = {1, 64, 96, 11}, .block = block, .density = 0.2, .data_type = type},
            grad_w_there, 24);
        EXPECT_EQ(two.plan.runs_transposed(Pass::GradW), grad_w_there);
        FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Isolate,
                             *executor);
        ASSERT_FALSE(layer.set_weights(sparse::random_pattern(64, 96, block, 0.2, 3)));
        if (type == DataType::Float)
          expect_right<float>(two, layer);
        else
          expect_right<Half>(two, layer);
        EXPECT_LE(layer.high_water(), two.machine.tile_memory);
      }
}

TEST(TwoLayouts, KeepBothSidesOfChangedWeightsEqual) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two =
      two_layouts({.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, true, 24);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  const sparse::Csr<float> before = sparse::random_pattern(64, 96, {1, 1}, 0.1, 3);
  const sparse::Csr<float> after = sparse::random_pattern(64, 96, {1, 1}, 0.1, 4);
  ASSERT_FALSE(layer.set_weights(before));
  ASSERT_FALSE(layer.update_weights(sparse::difference(before, after)));
  layer.set_values(after.values);
  EXPECT_EQ(layer.weights(), after);
  expect_right<float>(two, layer);
}

TEST(TwoLayouts, KeepTheirWeightsWhenNewOnesDoNotFit) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two = two_layouts(
      {.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, false, 24);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  const sparse::Csr<float> weights = sparse::random_pattern(64, 96, {1, 1}, 0.1, 3);
  ASSERT_FALSE(layer.set_weights(weights));
  EXPECT_TRUE(layer.set_weights(sparse::random_pattern(64, 96, {1, 1}, 1.0, 3)));
  EXPECT_EQ(layer.weights(), weights);
  expect_right<float>(two, layer);
}

// Room for these weights, and for no more than them, in Fwd's buckets alone.
TwoLayouts with_little_room_for_fwd(std::int64_t values, std::int64_t words) {
  TwoLayouts two = two_layouts(
      {.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, false, 24);
  two.plan.nonzeros_per_bucket = values;
  two.plan.fwd_meta_words = Words(words);
  two.plan.backward[0].nonzeros_per_bucket *= 20;
  two.plan.backward[0].fwd_meta_words = Words(two.plan.backward[0].fwd_meta_words.value * 20);
  return two;
}

TEST(TwoLayouts, GoBackOnBothSidesWhenOnlyFwdHasNoRoom) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts roomy = two_layouts(
      {.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, false, 24);
  const TwoLayouts two =
      with_little_room_for_fwd(roomy.plan.nonzeros_per_bucket, roomy.plan.fwd_meta_words.value);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  const sparse::Csr<float> weights = sparse::random_pattern(64, 96, {1, 1}, 0.1, 3);
  const sparse::Csr<float> many = sparse::random_pattern(64, 96, {1, 1}, 0.6, 3);
  ASSERT_FALSE(layer.set_weights(weights));
  const auto misfit = layer.set_weights(many);
  ASSERT_TRUE(misfit);
  EXPECT_THAT(misfit->message, testing::Not(testing::HasSubstr("own layout")));
  expect_right<float>(two, layer);
  EXPECT_TRUE(layer.update_weights(sparse::difference(weights, many)));
  EXPECT_EQ(layer.weights(), weights);
  expect_right<float>(two, layer);
}

TEST(TwoLayouts, SayInWhichLayoutWeightsDoNotFit) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  TwoLayouts two = with_little_room_for_fwd(100, 500);
  std::swap(two.plan.nonzeros_per_bucket, two.plan.backward[0].nonzeros_per_bucket);
  two.plan.nonzeros_per_bucket = 6000, two.plan.fwd_meta_words = Words(20000);
  two.plan.backward[0].nonzeros_per_bucket = 40;
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  const sparse::Csr<float> weights = sparse::random_pattern(64, 96, {1, 1}, 0.1, 3);
  const sparse::Csr<float> many = sparse::random_pattern(64, 96, {1, 1}, 0.6, 3);
  ASSERT_FALSE(layer.set_weights(weights));
  const auto misfit = layer.set_weights(many);
  ASSERT_TRUE(misfit);
  EXPECT_THAT(misfit->message, testing::HasSubstr("own layout"));
  const auto change = layer.update_weights(sparse::difference(weights, many));
  ASSERT_TRUE(change);
  EXPECT_THAT(change->message, testing::HasSubstr("own layout"));
  EXPECT_EQ(layer.weights(), weights);
  expect_right<float>(two, layer);
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TwoLayouts, SpeakOfTheCallersShapesNotOfTheTranspose) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two =
      two_layouts({.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, true, 24);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  EXPECT_THAT(
      message_of([&] { layer.set_weights(sparse::random_pattern(64, 95, {1, 1}, 0.1, 3)); }),
      testing::HasSubstr("the weight matrix is 64 x 95; this layer needs 64 x 96"));
  const sparse::Csr<float> weights = sparse::random_pattern(64, 96, {1, 1}, 0.1, 3);
  ASSERT_FALSE(layer.set_weights(weights));
  const Matrix<float> dq(64, 8), wrong(63, 8), s(96, 8);
  Matrix<float> ds(96, 8);
  std::vector<float> gradient(weights.values.size());
  EXPECT_THAT(message_of([&] { layer.grad_a<float>(wrong.view(), ds.view()); }),
              testing::HasSubstr("q_grad is 63 x 8; this layer needs 64 x 8"));
  EXPECT_THAT(message_of([&] { layer.grad_w<float>(wrong.view(), s.view(), gradient); }),
              testing::HasSubstr("q_grad is 63 x 8"));
}

TEST(TwoLayouts, AreRefusedWhereATileCannotHoldBoth) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  TwoLayouts two = two_layouts(
      {.size = {1, 64, 96, 8}, .density = 0.1, .data_type = DataType::Float}, false, 24);
  const Bytes needed =
      FullyConnected(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor)
          .high_water();
  two.machine.tile_memory = needed;
  FullyConnected(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  two.machine.tile_memory = needed - Bytes(1);
  EXPECT_THROW(
      FullyConnected(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor),
      Error);
}

}  // namespace
}  // namespace tessera::runtime
