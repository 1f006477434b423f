// Values and gradients in bucket order, on every layer.

#include "tessera/train/optim/encoded.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tessera/tests/layers/backends.hpp"

namespace tessera::test {
namespace {

template <class Setting>
class EncodedLayer : public testing::Test {
 protected:
  using Element = typename Setting::T;

  void use(BlockShape block) {
    problem_ = problem_of(data_type_of<Element>(), {2, 21, 26, 12}, block);
    layer_ = Setting::Backend::make(problem_, *executor_);
    weights_ = random_weights(problem_, 0.3, 3);
    const auto misfit = layer_.set_weights(weights_);
    ASSERT_FALSE(misfit) << misfit->message;
  }
  // Values as the layer computes with them.
  static std::vector<float> rounded(std::vector<float> values) {
    for (float& v : values) v = float(Element(v));
    return values;
  }

  std::unique_ptr<Executor> executor_ = make_executor(2);
  Problem problem_ = problem_of(data_type_of<Element>(), {2, 21, 26, 12}, {1, 1});
  typename Setting::Backend::Layer layer_ = Setting::Backend::make(problem_, *executor_);
  std::vector<sparse::Csr<float>> weights_;
};

using Settings = testing::Types<Setting<OnHost, float>, Setting<OnHost, Half>,
                                Setting<OnTiles, float>, Setting<OnTiles, Half>,
                                Setting<OnTwoLayouts, float>, Setting<OnTwoLayouts, Half>>;
TYPED_TEST_SUITE(EncodedLayer, Settings);

TYPED_TEST(EncodedLayer, GivesItsValuesBack) {
  using T = typename TypeParam::T;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
    this->use(block);
    for (const std::int64_t group : {1, 0}) {
      const std::span<const T> encoded = this->layer_.template encoded_values<T>(group);
      const partitioner::Buckets& order = this->layer_.buckets(group);
      ASSERT_EQ(std::ssize(encoded), order.grid.buckets() * order.values_per_bucket());
      std::vector<T> half(encoded.begin(), encoded.end());
      for (T& v : half) v = T(0.5f * float(v));
      this->layer_.template set_encoded_values<T>(half, group);
      std::vector<float> expected = this->rounded(this->weights_[std::size_t(group)].values);
      for (float& v : expected) v = float(T(0.5f * v));
      EXPECT_EQ(this->layer_.weights(group).values, expected);
    }
  }
}

// One step in bucket order is one step value by value.
TYPED_TEST(EncodedLayer, TakesAStepOfAnOptimiser) {
  using T = typename TypeParam::T;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
    this->use(block);
    auto& layer = this->layer_;
    const Matrix<T> s = random_matrix<T>(52, 12, 5), q_grad = random_matrix<T>(42, 12, 6);
    std::vector<float> gradients(std::size_t(layer.values()));
    layer.template grad_w<T>(q_grad.view(), s.view(), gradients);
    std::span<const float> rest = gradients;
    for (const std::int64_t group : {0, 1}) {
      const auto own = rest.first(this->weights_[std::size_t(group)].values.size());
      rest = rest.subspan(own.size());
      const train::Optimiser optimiser{.rule = train::Sgd{.learning_rate = 0.25}};
      const partitioner::Buckets& order = layer.buckets(group);
      auto state = train::make_encoded_state<float>(optimiser, order);
      const std::span<const T> held = layer.template encoded_values<T>(group);
      std::vector<T> values(held.begin(), held.end());
      train::step<T, float>(optimiser, order, values,
                            layer.template encoded_gradients<T>(own, group), state,
                            *this->executor_);
      layer.template set_encoded_values<T>(values, group);
      std::vector<float> expected = this->rounded(this->weights_[std::size_t(group)].values);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = float(T(expected[i] - 0.25f * float(T(own[i]))));
      EXPECT_EQ(layer.weights(group).values, expected);
    }
  }
}

TEST(EncodedHostLayer, HasNoBucketsWhereItsForwardPassIsDense) {
  const auto executor = make_executor(1);
  const Problem problem = problem_of(DataType::Float, {1, 20, 30, 4}, {1, 1});
  host::HostLayer layer(problem, host::read_host_cpu(), *executor,
                        {.dense = host::DenseChoice::Always});
  layer.set_weights(random_weights(problem, 0.5, 3));
  EXPECT_THROW(layer.buckets(), Error);
  EXPECT_THROW(layer.encoded_values<float>(), Error);
  EXPECT_THROW(layer.set_encoded_values<float>({}), Error);
}

}  // namespace
}  // namespace tessera::test
