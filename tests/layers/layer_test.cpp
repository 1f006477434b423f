// Every layer does the same, whatever computes it (layer/layer.hpp).

#include "tessera/layer/layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/tests/layers/any_layer.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::test {
namespace {

TYPED_TEST_SUITE(AnyLayer, Settings);

TYPED_TEST(AnyLayer, ComputesThePassesOfItsGroups) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
    SCOPED_TRACE(block.rows);
    this->use(this->problem(block));
    const auto weights = random_weights(this->problem_, 0.3, 3);
    this->set(weights);
    EXPECT_EQ(this->layer_.batch(), 12);
    EXPECT_EQ(this->layer_.values(), std::ssize(weights[0].values) + std::ssize(weights[1].values));
    EXPECT_EQ(this->layer_.weights(1), weights[1]);
    this->expect_right(weights, this->run());
  }
}

TYPED_TEST(AnyLayer, TakesNewWeightsAndNewValues) {
  this->set(random_weights(this->problem_, 0.5, 3));
  this->run();
  auto weights = random_weights(this->problem_, 0.2, 8);
  this->set(weights);
  this->expect_right(weights, this->run());
  for (float& v : weights[1].values) v = 0.5f - v;
  this->layer_.set_values(weights[1].values, 1);
  EXPECT_EQ(this->layer_.weights(1), weights[1]);
  this->expect_right(weights, this->run());
}

TYPED_TEST(AnyLayer, TakesAChangeOfPattern) {
  if constexpr (!TestFixture::kChangesPattern) return;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
    SCOPED_TRACE(block.rows);
    this->use(this->problem(block));
    auto weights = random_weights(this->problem_, 0.3, 3);
    this->set(weights);
    for (const std::int64_t group : {1, 0, 1}) {
      sparse::Csr<float>& own = weights[std::size_t(group)];
      const auto change =
          sparse::difference(own, random_weights(this->problem_, 0.3, 40 + own.blocks())[0]);
      const auto misfit = this->layer_.update_weights(change, group);
      ASSERT_FALSE(misfit) << misfit->message;
      own = sparse::with_change(own, change);
      EXPECT_EQ(this->layer_.weights(group), own);
      this->expect_right(weights, this->run());
    }
    const Results<typename TypeParam::T> updated = this->run();
    this->set(weights);
    if (TypeParam::Backend::kSameBitsAfterUpdate) {
      EXPECT_EQ(this->run(), updated);
    }
  }
}

// A change is prepared beside the weights, which stay until it is made.
TYPED_TEST(AnyLayer, PreparesAChangeOfPatternAndMakesItLater) {
  auto& layer = this->layer_;
  const auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  const auto change = sparse::difference(weights[1], random_weights(this->problem_, 0.3, 40)[0]);
  if constexpr (!TestFixture::kChangesPattern) {
    EXPECT_FALSE(layer.facts().changes_pattern);
    EXPECT_EQ(code_of([&] { layer.set_weights(sparse::checked(weights)); }),
              ErrorCode::InvalidArgument);
    EXPECT_EQ(code_of([&] { layer.update_weights(change, 1); }), ErrorCode::InvalidArgument);
    EXPECT_EQ(code_of([&] { layer.prepare_update(change, 1); }), ErrorCode::InvalidArgument);
    return;
  }
  const auto before = this->run();
  layer::PreparedUpdate update = layer.prepare_update(change, 1);
  ASSERT_FALSE(update.misfit());
  EXPECT_EQ(std::ssize(update.placed()), std::ssize(change.added) + std::ssize(change.removed));
  EXPECT_EQ(this->run(), before);
  EXPECT_EQ(layer.weights(1), weights[1]);
  layer.commit(std::move(update));
  auto changed = weights;
  changed[1] = sparse::with_change(weights[1], change);
  EXPECT_EQ(layer.weights(1), changed[1]);
  this->expect_right(changed, this->run());
}

TYPED_TEST(AnyLayer, RefusesAChangeThatWasPreparedForOtherWeights) {
  if constexpr (!TestFixture::kChangesPattern) return;
  auto& layer = this->layer_;
  const auto weights = random_weights(this->problem_, 0.3, 3);
  auto other = TypeParam::Backend::make(this->problem_, *this->executor_);
  this->set(weights);
  ASSERT_FALSE(other.set_weights(sparse::checked(weights)));
  const auto change = sparse::difference(weights[0], random_weights(this->problem_, 0.3, 40)[0]);
  const auto refuses = [&](layer::PreparedUpdate& update) {
    EXPECT_EQ(code_of([&] { layer.commit(std::move(update)); }), ErrorCode::InvalidArgument);
    EXPECT_EQ(layer.weights(), weights[0]);
  };
  layer::PreparedUpdate of_another = other.prepare_update(change);
  refuses(of_another);
  layer::PreparedUpdate kept = layer.prepare_update(change);
  EXPECT_EQ(code_of([&] { layer.set_weights(weights[0]); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { layer.set_values({}); }), ErrorCode::InvalidArgument);
  layer.commit(std::move(kept));  // what was refused has changed nothing
  this->set(weights);
  layer::PreparedUpdate stale = layer.prepare_update(change);
  layer.set_values(weights[1].values, 1);
  refuses(stale);
  EXPECT_EQ(code_of([&] { layer.prepare_update(change, 2); }), ErrorCode::InvalidArgument);
}

TYPED_TEST(AnyLayer, ChangesValuesInPlaceAndStaysConsistentIfThatFails) {
  auto& layer = this->layer_;
  auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  layer.change_values(
      [](std::span<float> part, std::int64_t first) {
        for (std::size_t i = 0; i < part.size(); ++i)
          part[i] = 0.25f * part[i] + float((first + std::int64_t(i)) % 5);
      },
      1);
  for (std::size_t i = 0; i < weights[1].values.size(); ++i)
    weights[1].values[i] = 0.25f * weights[1].values[i] + float(i % 5);
  EXPECT_EQ(layer.weights(1), weights[1]);
  this->expect_right(weights, this->run());
  EXPECT_THROW(layer.change_values([](std::span<float> part, std::int64_t) {
    part[0] = 99;
    throw std::runtime_error("no gradients");
  }),
               std::runtime_error);
  weights[0] = layer.weights(0);  // with the change or without it, but then in every pass
  this->expect_right(weights, this->run());
}

TEST(LayerOf, NamesTheCallThatTellsIfAStoppedPassFinished) {
  const auto executor = make_executor(1);
  const Problem problem = problem_of(DataType::Float, {1, 16, 16, 8}, {1, 1});
  auto layer = OnHost::make(problem, *executor);
  layer.set_weights(random_weights(problem, 0.3, 3)[0]);
  const Matrix<float> in(16, 8);
  Matrix<float> out(16, 8);
  std::vector<float> gradients(std::size_t(layer.values()));
  const std::stop_source stop;
  const layer::PassOptions options{.stop = stop.get_token()};
  const auto names = [](const std::string& message, std::string_view call) {
    EXPECT_NE(message.find(call), std::string::npos) << message;
  };
  names(refusal([&] { layer.forward<float>(in.view(), out.view(), options); }),
        "forward(s, q, options, cost)");
  names(refusal([&] { layer.grad_a<float>(in.view(), out.view(), options); }),
        "grad_a(q_grad, s_grad, options, cost)");
  names(refusal([&] { layer.grad_w<float>(in.view(), in.view(), gradients, options); }),
        "grad_w(q_grad, s, gradients, options, cost)");
}

// Computes nothing, and calls a function while the cost of a pass is read.
class ReadCost : public layer::BackendOf<int> {
 public:
  std::function<void()> while_read;

  layer::LayerFacts facts() const override {
    return {.problem = {.size = {1, 1, 1, 1}, .data_type = DataType::Float},
            .has_weights = true,
            .output_rows = 1,
            .input_rows = 1};
  }
  std::optional<partitioner::Misfit> set_weights(std::vector<sparse::CheckedCsr<float>>) override {
    return {};
  }
  void set_values(std::span<const float>, std::int64_t) override {}
  const sparse::Csr<float>& weights_of(std::int64_t) const override { return weights_; }
  verify::Rounding rounding(Pass) const override { return {}; }

 protected:
  bool compute(Pass, const layer::Operands&, const layer::PassOptions&, int& cost) override {
    cost = 7;
    return true;
  }
  double seconds(const int& cost) const override {
    while_read();
    return cost;
  }

 private:
  sparse::Csr<float> weights_;
};

TEST(Backend, ReadsTheCostOfAPassBeforeAnotherCallBegins) {
  ReadCost backend;
  std::string message;
  backend.while_read = [&] {
    message = refusal([&] { const auto call = backend.caller.enter("another call"); });
  };
  const Matrix<float> s(1, 1);
  Matrix<float> q(1, 1);
  const layer::Outcome outcome =
      backend.run_and_keep_cost(Pass::Fwd, {.in = s.view(), .out = q.view()}, {});
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.seconds, 7);
  EXPECT_NE(message, "");
}

TEST(PreparedUpdate, IsRefusedByALayerOfAnotherKind) {
  const auto executor = make_executor(1);
  const Problem problem = problem_of(DataType::Float, {1, 16, 16, 8}, {1, 1});
  auto tiles = OnTiles::make(problem, *executor);
  auto here = OnHost::make(problem, *executor);
  const auto weights = random_weights(problem, 0.3, 3);
  ASSERT_FALSE(tiles.set_weights(weights[0]));
  for (const bool has_weights : {false, true}) {
    if (has_weights) {
      ASSERT_FALSE(here.set_weights(weights[0]));
    }
    layer::PreparedUpdate of_tiles = tiles.prepare_update({});
    EXPECT_EQ(code_of([&] { here.commit(std::move(of_tiles)); }), ErrorCode::InvalidArgument);
  }
  layer::PreparedUpdate of_host = here.prepare_update({}), stale = tiles.prepare_update({});
  EXPECT_EQ(code_of([&] { tiles.commit(std::move(of_host)); }), ErrorCode::InvalidArgument);
  tiles.restore_weights(tiles.saved_weights());
  EXPECT_EQ(code_of([&] { tiles.commit(std::move(stale)); }), ErrorCode::InvalidArgument);
}

// Code that does not know the target runs a pass by its operands.
TYPED_TEST(AnyLayer, RunsAPassByItsOperands) {
  using T = typename TypeParam::T;
  this->set(random_weights(this->problem_, 0.3, 3));
  const Results<T> expected = this->run();
  Results<T> r = this->zeros();
  layer::Layer& layer = this->layer_;
  for (const layer::Outcome& outcome :
       {layer.run(Pass::Fwd, {.in = this->s(), .out = r.q.view()}),
        layer.run(Pass::GradA, {.in = this->q_grad(), .out = r.s_grad.view()}),
        layer.run(Pass::GradW,
                  {.in = this->q_grad(), .in_s = this->s(), .gradients = r.gradients})}) {
    EXPECT_TRUE(outcome.finished);
    EXPECT_GT(outcome.seconds, 0);
  }
  EXPECT_EQ(r, expected);
  EXPECT_EQ(layer.facts().values, std::ssize(r.gradients));
}

// A layer refuses what it does not do: an option that is ignored would be a wrong result.
TYPED_TEST(AnyLayer, RefusesOptionsThatItDoesNotTake) {
  using T = typename TypeParam::T;
  struct OfNobody : layer::TargetOptions {
  } of_nobody;
  this->set(random_weights(this->problem_, 0.3, 3));
  auto& layer = this->layer_;
  Results<T> r = this->zeros();
  const std::vector<float> bias(42, 1.0f);
  const auto code = [&](const layer::PassOptions& options) {
    return code_of([&] { layer.template forward<T>(this->s(), r.q.view(), options); });
  };
  EXPECT_EQ(code({.target = &of_nobody}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code({.accumulate = layer::Accumulate::Yes}), ErrorCode::InvalidArgument);
  EXPECT_EQ(code({.where_positive = this->s()}), ErrorCode::InvalidArgument);
  std::stop_source stop;
  EXPECT_EQ(code({.stop = stop.get_token()}), ErrorCode::InvalidArgument);
  if (!layer.facts().works_on_results) {
    EXPECT_EQ(code({.bias = bias}), ErrorCode::InvalidArgument);
  }
}

TYPED_TEST(AnyLayer, RefusesCallsBeforeThereAreWeights) {
  if constexpr (!TestFixture::kChangesPattern) return;
  using T = typename TypeParam::T;
  auto& layer = this->layer_;
  Results<T> r = this->zeros();
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { layer.template forward<T>(this->s(), r.q.view()); },
           [&] { layer.template grad_a<T>(this->q_grad(), r.s_grad.view()); },
           [&] { layer.template grad_w<T>(this->q_grad(), this->s(), r.gradients); },
           [&] { layer.set_values({}); }, [&] { layer.update_weights({}); },
           [&] { layer.weights(); }})
    EXPECT_EQ(code_of(call), ErrorCode::InvalidArgument);
  if constexpr (TestFixture::kHasBuckets) {
    EXPECT_EQ(code_of([&] { layer.buckets(); }), ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(layer.values(), 0);
}

TYPED_TEST(AnyLayer, RefusesWhatIsNotItsOwnAndStaysAsItWas) {
  using T = typename TypeParam::T;
  auto& layer = this->layer_;
  const auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  const Results<T> before = this->run();
  Results<T> r = before;
  std::vector<float> few(3);
  const auto narrow = this->s().sub({0, 52}, {0, 11});
  const sparse::PatternChange stored{{}, {{0, weights[0].col[0]}}};
  for (const auto& call : std::vector<std::function<void()>>{
           [&] {
             layer.set_weights(sparse::checked(random_weights(this->problem({2, 2}), 0.3, 3)));
           },
           [&] { layer.template forward<T>(narrow, r.q.view()); },
           [&] { layer.template grad_a<T>(this->s(), r.s_grad.view()); },
           [&] { layer.template grad_w<T>(this->q_grad(), narrow, r.gradients); },
           [&] { layer.template grad_w<T>(this->q_grad(), this->s(), few); },
           [&] { layer.set_values(few); }, [&] { layer.set_values(weights[0].values, 2); },
           [&] { layer.set_values(weights[0].values, -1); }, [&] { layer.weights(2); },
           [&] { layer.update_weights(stored); }, [&] { layer.update_weights({}, 2); },
           [&] { layer.set_weights(weights[0]); }})
    EXPECT_EQ(code_of(call), ErrorCode::InvalidArgument);
  if constexpr (TestFixture::kHasBuckets) {
    EXPECT_EQ(code_of([&] { layer.buckets(-1); }), ErrorCode::InvalidArgument);
  }
  auto outside = weights;
  outside[1].col.back() = 4000;
  EXPECT_EQ(code_of([&] { layer.set_weights(sparse::checked(outside)); }), ErrorCode::BadInput);
  EXPECT_EQ(layer.weights(1), weights[1]);
  EXPECT_EQ(this->run(), before);
}

TYPED_TEST(AnyLayer, RefusesValuesThatItsTypeCannotHold) {
  if constexpr (std::is_same_v<typename TypeParam::T, Half>) {
    auto& layer = this->layer_;
    const auto weights = random_weights(this->problem_, 0.3, 3);
    this->set(weights);
    std::vector<float> large = weights[0].values;
    large[0] = 1e6f;
    EXPECT_EQ(code_of([&] { layer.set_values(large); }), ErrorCode::BadInput);
    const auto make_large = [](std::span<float> part, std::int64_t) {
      if (!part.empty()) part[0] = 1e6f;
    };
    EXPECT_EQ(code_of([&] { layer.change_values(make_large); }), ErrorCode::BadInput);
    EXPECT_EQ(layer.weights(0), weights[0]);
    this->expect_right(weights, this->run());
  }
}

TYPED_TEST(AnyLayer, RefusesOperandsOfAnotherType) {
  using T = typename TypeParam::T;
  using Other = std::conditional_t<std::is_same_v<T, float>, Half, float>;
  this->set(random_weights(this->problem_, 0.3, 3));
  const Matrix<Other> s(52, 12);
  Matrix<Other> q(42, 12);
  EXPECT_EQ(code_of([&] { this->layer_.template forward<Other>(s.view(), q.view()); }),
            ErrorCode::InvalidArgument);
}

TYPED_TEST(AnyLayer, ChecksItselfAndReportsItsSteps) {
  using T = typename TypeParam::T;
  auto& layer = this->layer_;
  this->set(random_weights(this->problem_, 0.3, 3));
  Results<T> r = this->zeros();
  verify::Checksums checksums;
  std::int64_t steps = 0;
  const layer::PassOptions options{
      .progress = [&](const verify::Progress& at) { EXPECT_EQ(at.begun, steps++); },
      .self_check = &checksums};
  typename TestFixture::L::Cost cost;
  const auto expect_checked = [&](bool finished) {
    EXPECT_TRUE(finished);
    EXPECT_TRUE(checksums.ok());
    EXPECT_GE(checksums.compared, 2) << "both groups";
    EXPECT_GT(steps, 0);
    steps = 0;
    checksums = {};
  };
  expect_checked(layer.template forward<T>(this->s(), r.q.view(), options, cost));
  expect_checked(layer.template grad_a<T>(this->q_grad(), r.s_grad.view(), options, cost));
  expect_checked(layer.template grad_w<T>(this->q_grad(), this->s(), r.gradients, options, cost));
  EXPECT_EQ(this->run(), r);
}

TYPED_TEST(AnyLayer, StopsBeforeAnyStep) {
  using T = typename TypeParam::T;
  auto& layer = this->layer_;
  const auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  Results<T> r = this->zeros();
  typename TestFixture::L::Cost cost;
  std::stop_source stop;
  std::int64_t steps = 0;
  const layer::PassOptions options{.stop = stop.get_token(), .progress = [&](const auto&) {
                                     ++steps;
                                     stop.request_stop();
                                   }};
  EXPECT_FALSE(layer.template forward<T>(this->s(), r.q.view(), options, cost));
  EXPECT_EQ(steps, 1) << "the step before which the caller asks still runs, the next does not";
  EXPECT_FALSE(layer.template grad_a<T>(this->q_grad(), r.s_grad.view(), options, cost));
  EXPECT_FALSE(layer.template grad_w<T>(this->q_grad(), this->s(), r.gradients, options, cost));
  EXPECT_EQ(steps, 1) << "a pass that is stopped already begins no step";
  const layer::PassOptions throwing{
      .progress = [](const auto&) { throw std::runtime_error("enough"); }};
  EXPECT_THROW(static_cast<void>(layer.template forward<T>(this->s(), r.q.view(), throwing, cost)),
               std::runtime_error);
  this->expect_right(weights, this->run());
}

}  // namespace
}  // namespace tessera::test
