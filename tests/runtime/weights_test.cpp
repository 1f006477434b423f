#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/support/message_of.hpp"

// Weights that change while the layer stays: patterns, values, both.
namespace tessera::runtime {
namespace {

// Small whole numbers: sums are exact, so bits do not depend on where a block lies.
void make_whole(std::vector<float>& values, std::uint64_t seed) {
  Random random(seed);
  for (float& v : values) v = float(random.below(7) - 3);
}

struct Outputs {
  std::vector<float> q, s_grad, gradient;
  friend bool operator==(const Outputs&, const Outputs&) = default;
};

template <class T>
Outputs outputs(FullyConnected& layer, const LayerCase& c) {
  const Dims size = c.problem().size;
  Matrix<T> s(size.y, size.z), q_grad(size.x, size.z), q(size.x, size.z), s_grad(size.y, size.z);
  std::vector<float> whole(std::size_t(s.elements().size() + q_grad.elements().size()));
  make_whole(whole, c.seed);
  for (std::size_t i = 0; i < s.elements().size(); ++i) s.elements()[i] = T(whole[i]);
  for (std::size_t i = 0; i < q_grad.elements().size(); ++i)
    q_grad.elements()[i] = T(whole[s.elements().size() + i]);
  std::vector<float> gradient(std::size_t(layer.values()));
  layer.forward<T>(std::as_const(s).view(), q.view());
  layer.grad_a<T>(std::as_const(q_grad).view(), s_grad.view());
  layer.grad_w<T>(std::as_const(q_grad).view(), std::as_const(s).view(), gradient);
  return {as_float(q), as_float(s_grad), gradient};
}

Outputs outputs_of(FullyConnected& layer, const LayerCase& c) {
  return c.type == DataType::Half ? outputs<Half>(layer, c) : outputs<float>(layer, c);
}

// About `share` of the blocks go, as many come elsewhere.
sparse::PatternChange random_change(const sparse::Csr<float>& weights, double share,
                                    std::uint64_t seed) {
  Random random(seed);
  sparse::PatternChange change;
  for (std::int64_t r = 0; r < weights.block_rows(); ++r) {
    auto stored = weights.row_begin[std::size_t(r)];
    for (std::int32_t col = 0; col < weights.block_cols(); ++col) {
      const bool is_stored =
          stored < weights.row_begin[std::size_t(r) + 1] && weights.col[std::size_t(stored)] == col;
      stored += is_stored;
      if (random.unit() < share)
        (is_stored ? change.removed : change.added).push_back({std::int32_t(r), col});
    }
  }
  return change;
}

class Layer {
 public:
  explicit Layer(const LayerCase& c)
      : executor_(make_executor(2)),
        layer_(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, *executor_) {}
  FullyConnected* operator->() { return &layer_; }
  FullyConnected& operator*() { return layer_; }

 private:
  std::unique_ptr<Executor> executor_;
  FullyConnected layer_;
};

LayerCase make_case(std::int64_t rows, std::int64_t cols, BlockShape block) {
  LayerCase c;
  c.weights = random_weights(rows, cols, block, 0.3, 6);
  make_whole(c.weights.values, 6);
  c.batch = 6;
  c.partition = {1, 2, 2, 2};
  c.room = 3;
  return c;
}

// Elements and blocks as they are, with separate GradA buckets, in other blocks, over the edge.
std::vector<LayerCase> weights_cases() {
  std::vector<LayerCase> all;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {5, 3}})
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const bool dense : {false, true}) {
        LayerCase c = make_case(60 * block.rows, 48 * block.cols, block);
        c.type = type;
        c.dense = dense;
        all.push_back(c);
      }
  LayerCase separate = all[0], edge = make_case(175, 150, {5, 3});
  separate.separate_grad_a = true;
  edge.missing = {2, 1};
  all.insert(all.end(), {separate, edge});
  return all;
}

TEST(UpdateWeights, GivesWhatSettingTheNewMatrixGives) {
  for (const LayerCase& c : weights_cases())
    for (const double share : {0.005, 0.05, 0.7}) {
      SCOPED_TRACE(c.name() + ", share " + std::to_string(share));
      Layer changed(c), fresh(c);
      ASSERT_FALSE(changed->set_weights(c.weights));
      const Outputs before = outputs_of(*changed, c);
      for (std::uint64_t step = 1; step <= 2; ++step) {  // the second starts from changed buckets
        const auto change = random_change(changed->weights(), share, step);
        ASSERT_FALSE(change.added.empty() || change.removed.empty());
        const auto want = sparse::with_change(changed->weights(), change);
        const auto misfit = changed->update_weights(change);
        ASSERT_FALSE(misfit) << misfit->message;
        EXPECT_EQ(changed->weights(), want);
      }
      const sparse::Csr<float> now = changed->weights();
      ASSERT_FALSE(fresh->set_weights(now));
      EXPECT_EQ(outputs_of(*changed, c), outputs_of(*fresh, c));
      EXPECT_NE(outputs_of(*changed, c), before);
    }
}

TEST(UpdateWeights, AChangeThatDoesNotFitLeavesEverything) {
  for (const bool dense : {false, true}) {
    LayerCase c = make_case(60, 48, {1, 1});
    c.weights = random_weights(60, 48, {1, 1}, 0.02, 6);
    make_whole(c.weights.values, 7);
    c.dense = dense;
    c.room = 1.5;
    Layer layer(c);
    ASSERT_FALSE(layer->set_weights(c.weights));
    ASSERT_FALSE(layer->update_weights(random_change(layer->weights(), 0.01, 3)));
    const sparse::Csr<float> held = layer->weights();
    const Outputs before = outputs_of(*layer, c);
    const partitioner::Buckets buckets = layer->buckets();
    const auto misfit = layer->update_weights(random_change(held, 0.9, 4));
    ASSERT_EQ(misfit.has_value(), !dense) << "a dense plan has room for everything";
    if (dense) continue;
    EXPECT_EQ(layer->weights(), held);
    EXPECT_EQ(layer->buckets().source, buckets.source);
    EXPECT_EQ(outputs_of(*layer, c), before);
  }
}

TEST(UpdateWeights, RefusesAChangeThatIsNoneAndStaysAsItWas) {
  const LayerCase c = make_case(12, 12, {1, 1});
  Layer layer(c);
  EXPECT_THROW(layer->update_weights({}), Error) << "no weights yet";
  ASSERT_FALSE(layer->set_weights(c.weights));
  const Outputs before = outputs_of(*layer, c);
  EXPECT_THROW(layer->update_weights({{}, {{12, 0}}}), Error) << "outside";
  EXPECT_THROW(layer->update_weights({}, 1), Error) << "one group only";
  EXPECT_FALSE(layer->update_weights({}));
  EXPECT_EQ(outputs_of(*layer, c), before);
}

TEST(SetValues, GivesWhatSettingTheSamePatternWithTheseValuesGives) {
  for (const LayerCase& c : weights_cases()) {
    SCOPED_TRACE(c.name());
    Layer changed(c), fresh(c);
    ASSERT_FALSE(changed->set_weights(c.weights));
    ASSERT_FALSE(changed->update_weights(random_change(c.weights, 0.02, 2)));
    sparse::Csr<float> want = changed->weights();
    make_whole(want.values, 77);
    const auto words = changed->buckets().meta;
    changed->set_values(want.values);
    EXPECT_EQ(changed->weights(), want);
    EXPECT_EQ(changed->buckets().meta, words);
    ASSERT_FALSE(fresh->set_weights(want));
    EXPECT_EQ(outputs_of(*changed, c), outputs_of(*fresh, c));
  }
}

TEST(SetValues, RefusesAnotherNumberOfValues) {
  const LayerCase c = make_case(12, 12, {1, 1});
  Layer layer(c);
  std::vector<float> values(c.weights.values.size());
  EXPECT_THROW(layer->set_values(values), Error) << "no weights yet";
  ASSERT_FALSE(layer->set_weights(c.weights));
  values.push_back(1);
  EXPECT_THROW(layer->set_values(values), Error);
  EXPECT_EQ(layer->weights(), c.weights);
}

// Infinite weights give infinite results, which no check can call wrong.
TEST(SetWeights, RefusesValuesThatTheLayersTypeCannotHoldAndKeepsItsOwn) {
  for (const bool dense : {false, true}) {
    LayerCase c = make_case(60, 48, {1, 1});
    c.dense = dense;
    for (const DataType type : {DataType::Float, DataType::Half}) {
      c.type = type;
      const auto executor = make_executor(1);
      FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                           *executor);
      ASSERT_FALSE(layer.set_weights(c.weights));
      sparse::Csr<float> large = c.weights;
      large.values[3] = 70000;
      if (type == DataType::Float) {
        EXPECT_FALSE(layer.set_weights(large));
        EXPECT_NO_THROW(layer.set_values(large.values));
        continue;
      }
      const auto set_weights = [&] { static_cast<void>(layer.set_weights(large)); };
      for (const std::string& message : {test::message_of(set_weights),
                                         test::message_of([&] { layer.set_values(large.values); })})
        EXPECT_NE(message.find("weight 3 is 70000; half holds -65504 to 65504"), std::string::npos)
            << message;
      EXPECT_EQ(layer.weights(), c.weights);
    }
  }
}

TEST(SetWeights, GivesTheSameBucketsAsEncodingAndDoesNotDependOnWhatWasThere) {
  for (const int threads : {1, 3}) {
    const LayerCase c = make_case(60, 48, {1, 1});
    const auto executor = make_executor(ExecutorKind::Threads, threads);
    FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                         *executor);
    ASSERT_FALSE(layer.set_weights(random_weights(60, 48, {1, 1}, 0.4, 9)));
    ASSERT_FALSE(layer.set_weights(c.weights));
    const auto encoded =
        partitioner::encode(c.weights, tile_grid(c.problem(), c.plan(), c.machine()));
    ASSERT_TRUE(encoded.buckets);
    EXPECT_EQ(layer.buckets().meta, encoded.buckets->meta);
    EXPECT_EQ(layer.buckets().source, encoded.buckets->source);
    ASSERT_FALSE(layer.set_weights(layer.weights())) << "its own weights again";
    EXPECT_EQ(layer.buckets().meta, encoded.buckets->meta);
  }
}

}  // namespace
}  // namespace tessera::runtime
