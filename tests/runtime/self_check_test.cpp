#include "tessera/verify/self_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

// Checksums of results, and bits that flip in the memory of tiles: what changes a result is seen.
namespace tessera::runtime {
namespace {

// The effect of a flipped bit.
enum class Effect {
  Nowhere,   // the tile held no such bit, or there was no such step
  Harmless,  // no result has changed: padding, words nobody reads, what is over
  Caught,
  Missed  // results have changed and nobody said so
};

// A layer in Isolate mode with what its passes give when nothing flips.
class Trial {
 public:
  // Weights and operands are +1 and -1, so that every result is exact.
  explicit Trial(LayerCase c)
      : c_(std::move(c)), s_(c_.weights.cols, c_.batch), q_grad_(c_.weights.rows, c_.batch) {
    sparse::fill_signs(c_.weights, 5);
    Random random(9);
    for (float& v : s_.elements()) v = random.sign();
    for (float& v : q_grad_.elements()) v = random.sign();
    layer_.emplace(c_.problem(), c_.plan(), c_.machine(), device::ExchangeMode::Isolate,
                   *executor_);
    EXPECT_FALSE(layer_->set_weights(c_.weights, {.force_spills = c_.force_spills}));
    for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
      verify::Checksums checksums;
      device::Ledger ledger;
      clean_[pass] = run(pass, {.self_check = &checksums}, ledger);
      steps_[pass] = std::ssize(ledger.steps);
      EXPECT_TRUE(checksums.ok() && checksums.exact) << to_string(checksums);
    }
  }

  std::int64_t steps(Pass pass) const { return steps_.at(pass); }
  std::int64_t tiles() const { return c_.machine().tiles; }
  std::int64_t most_bits() const { return 8 * layer_->high_water().value; }

  // `slot` gets the name of what was struck.
  Effect flip(Pass pass, const device::Fault& fault, std::string& slot) {
    verify::Checksums checksums;
    std::optional<device::Struck> struck;
    device::Ledger ledger;
    std::optional<std::vector<float>> results;
    TilePass options;
    options.pass.self_check = &checksums;
    options.tiles.fault = fault;
    options.tiles.struck = &struck;
    try {
      results = run(pass, options, ledger);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed) throw;
    }
    if (struck) slot = struck->slot;
    if (!struck) return Effect::Nowhere;
    if (!results) return Effect::Caught;
    return *results == clean_.at(pass) ? Effect::Harmless : Effect::Missed;
  }

 private:
  std::vector<float> run(Pass pass, const runtime::PassOptions& options, device::Ledger& ledger) {
    const auto s = std::as_const(s_).view(), q_grad = std::as_const(q_grad_).view();
    Matrix<float> q(q_grad_.rows(), c_.batch), s_grad(s_.rows(), c_.batch);
    std::vector<float> gradients(c_.weights.values.size());
    bool finished = false;
    if (pass == Pass::Fwd) finished = layer_->forward<float>(s, q.view(), options, ledger);
    if (pass == Pass::GradA)
      finished = layer_->grad_a<float>(q_grad, s_grad.view(), options, ledger);
    if (pass == Pass::GradW)
      finished = layer_->grad_w<float>(q_grad, s, gradients, options, ledger);
    EXPECT_TRUE(finished);
    if (pass == Pass::GradW) return gradients;
    const auto& elements = pass == Pass::Fwd ? q.elements() : s_grad.elements();
    return {elements.begin(), elements.end()};
  }

  LayerCase c_;
  Matrix<float> s_, q_grad_;
  std::unique_ptr<Executor> executor_ = make_executor(1);
  std::optional<runtime::FullyConnected> layer_;
  std::map<Pass, std::vector<float>> clean_;
  std::map<Pass, std::int64_t> steps_;
};

LayerCase spilling_case(BlockShape block, bool travelling, bool separate) {
  LayerCase c;
  c.weights = random_weights(6 * block.rows, 8 * block.cols, block, 0.5, 3);
  c.batch = 6;
  c.partition = {1, 2, 2, 2};
  c.room = 2;
  c.travelling_buckets = travelling;
  c.separate_grad_a = separate;
  c.force_spills = true;
  return c;
}

// Bits all over the machine at every step: how many of each slot were caught, how many harmless.
struct Tally {
  std::map<std::string, int> caught, harmless;
  int missed = 0;
};

Tally sweep(Trial& trial, Pass pass, std::int64_t flips, std::uint64_t seed) {
  Tally tally;
  Random random(seed);
  for (std::int64_t i = 0; i < flips; ++i) {
    const device::Fault fault{TileId(random.below(trial.tiles())), random.below(trial.steps(pass)),
                              random.below(trial.most_bits())};
    std::string slot;
    const Effect effect = trial.flip(pass, fault, slot);
    if (effect == Effect::Caught) ++tally.caught[slot];
    if (effect == Effect::Harmless) ++tally.harmless[slot];
    tally.missed += effect == Effect::Missed;
    EXPECT_NE(effect, Effect::Missed)
        << to_string(pass) << ", tile " << fault.tile.value << ", step " << fault.step << ", bit "
        << fault.bit << ": \"" << slot << "\", seed " << seed;
  }
  return tally;
}

// Every kind of memory whose bits matter must have been caught at some time.
TEST(SelfCheck, CatchesEveryFlippedBitThatChangesAResult) {
  std::map<Pass, std::set<std::string>> caught;
  int harmless = 0;
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}})
    for (const bool travelling : {false, true}) {
      Trial trial(spilling_case(block, travelling, travelling && block.is_element()));
      for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
        SCOPED_TRACE(testing::Message() << "block " << block.rows << " travelling " << travelling);
        const Tally tally = sweep(trial, pass, 1500, 7);
        for (const auto& [slot, times] : tally.caught) caught[pass].insert(slot);
        for (const auto& [slot, times] : tally.harmless) harmless += times;
      }
    }
  for (const Pass pass : {Pass::Fwd, Pass::GradA})
    EXPECT_THAT(caught[pass],
                testing::IsSupersetOf({"bucket words", "bucket values", "operand", "operand share",
                                       "partial sums", "partials of others"}))
        << to_string(pass);
  EXPECT_THAT(caught[Pass::GradW],
              testing::IsSupersetOf({"bucket words", "output gradient", "input", "gradient sums"}));
  EXPECT_GT(harmless, 100) << "padding and what nobody reads any more";
}

// A flip that changes nothing is not called caught: the last word of a bucket is padding.
TEST(SelfCheck, SaysNothingOfAFlipThatChangesNothing) {
  LayerCase c = spilling_case({1, 1}, false, false);
  c.room = 8;
  Trial trial(c);
  const Tally tally = sweep(trial, Pass::Fwd, 800, 11);
  EXPECT_GT(tally.harmless.at("bucket words"), 20);
  EXPECT_GT(tally.harmless.at("bucket values"), 20);
}

TEST(Fault, StrikesOnlyInTheRunItIsMeantForAndOnlyInIsolateMode) {
  const LayerCase c = spilling_case({1, 1}, false, false);
  Trial trial(c);
  std::string slot;
  EXPECT_EQ(trial.flip(Pass::Fwd, {TileId(0), 1000, 0}, slot), Effect::Nowhere);
  EXPECT_EQ(trial.flip(Pass::Fwd, {TileId(0), 0, std::int64_t{1} << 40}, slot), Effect::Nowhere);
  int caught = 0;
  for (std::int64_t bit = 0; bit < 400 && caught == 0; ++bit)
    caught += trial.flip(Pass::Fwd, {TileId(1), 1, bit}, slot) == Effect::Caught;
  EXPECT_EQ(caught, 1);
  EXPECT_EQ(trial.flip(Pass::Fwd, {TileId(0), 1000, 0}, slot), Effect::Nowhere)
      << "a run after it is right again";

  const auto executor = make_executor(1);
  runtime::FullyConnected shared(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                                 *executor);
  ASSERT_FALSE(shared.set_weights(c.weights, {.force_spills = true}));
  const Matrix<float> s(c.weights.cols, c.batch);
  Matrix<float> q(c.weights.rows, c.batch);
  device::Ledger ledger;
  TilePass with_fault;
  with_fault.tiles.fault = device::Fault{};
  EXPECT_THROW(static_cast<void>(shared.forward<float>(s.view(), q.view(), with_fault, ledger)),
               Error);
}

// With any numbers: what is larger than rounding is seen, and right results never are.
TEST(SelfCheck, PassesRightResultsOfAnyTypeAndSeesWhatIsLargerThanRounding) {
  for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const auto weights = random_weights(40, 60, {4, 4}, 0.3, 5);
      const auto s = random_matrix<T>(60, 9, 6);
      Matrix<T> q(40, 9);
      const auto rounded = reference_elements<T>({.weights = weights, .batch = 9, .type = type});
      const Matrix<float> dense = sparse::to_dense(rounded);
      for (std::int64_t x = 0; x < 40; ++x)
        for (std::int64_t z = 0; z < 9; ++z) {
          float sum = 0;
          for (std::int64_t y = 0; y < 60; ++y) sum += dense(x, y) * float(s(y, z));
          q(x, z) = T(sum);
        }
      const verify::Rounding rounding{type, DataType::Float, 1};
      const auto check = [&] {
        return verify::check_product<T>(weights, s.view(), std::as_const(q).view(), rounding);
      };
      EXPECT_TRUE(check().ok()) << to_string(type) << ": " << to_string(check());
      EXPECT_FALSE(check().exact);
      EXPECT_GT(check().worst, 0);
      const T before = q(17, 4);
      q(17, 4) = T(float(before) + 2.0f);
      const verify::Checksums wrong = check();
      EXPECT_EQ(wrong.first_wrong_row, 17) << to_string(type);
      EXPECT_EQ(wrong.wrong_rows, 1);
      EXPECT_EQ(wrong.first_wrong_col, 4);
      q(17, 4) = T(NAN);
      EXPECT_EQ(check().first_wrong_row, 17);
      q(17, 4) = before;
      std::swap(q(3, 2), q(5, 2));
      EXPECT_EQ(check().wrong_rows, 2) << "in each other's place";
      EXPECT_EQ(check().wrong_cols, 1);
    });
}

// A flip of a partial sum before the reduction makes a result wrong in the first run only.
TEST(SelfCheck, RepairsAPassByRunningItAgainWithoutTheFault) {
  const LayerCase c = spilling_case({1, 1}, false, false);
  const auto executor = make_executor(1);
  runtime::FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Isolate,
                                *executor);
  ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
  const Operands<float> in(c);
  Matrix<float> clean(c.weights.rows, c.batch), q(c.weights.rows, c.batch);
  verify::Checksums checksums;
  device::Ledger ledger;
  ASSERT_TRUE(layer.forward<float>(in.s.view(), clean.view(), {}, ledger));
  int repaired = 0;
  for (std::int64_t bit = 30; bit < layer.high_water().value * 8; bit += 61) {
    TilePass options;
    options.pass.self_check = &checksums;
    options.pass.repair = true;
    options.tiles.fault = device::Fault{TileId(1), 2, bit};
    ASSERT_TRUE(layer.forward<float>(in.s.view(), q.view(), options, ledger));
    if (checksums.first_failure.empty()) continue;
    ++repaired;
    EXPECT_NE(checksums.first_failure.find("self-check"), std::string::npos);
    EXPECT_EQ(q.elements(), clean.elements());
  }
  EXPECT_GT(repaired, 0);
}

// Results that failed their check are handed over as computed, whatever layout computed them.
TEST(SelfCheck, HandsOverGradientsThatAreWrong) {
  const LayerCase c = spilling_case({1, 1}, false, false);
  const auto executor = make_executor(1);
  runtime::FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Isolate,
                                *executor);
  ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
  const Operands<float> in(c);
  int wrong = 0;
  for (std::int64_t bit = 30; bit < layer.high_water().value * 8; bit += 61) {
    std::vector<float> gradients(c.weights.values.size(), 12345.0f);
    verify::Checksums checksums;
    device::Ledger ledger;
    TilePass options;
    options.pass.self_check = &checksums;
    options.tiles.fault = device::Fault{TileId(1), 2, bit};
    try {
      static_cast<void>(layer.grad_w<float>(in.q_grad.view(), in.s.view(), std::span(gradients),
                                            options, ledger));
    } catch (const Error&) {
      if (checksums.compared == 0) continue;  // damaged words ended the pass
      ++wrong;
      EXPECT_EQ(std::count(gradients.begin(), gradients.end(), 12345.0f), 0);
    }
  }
  EXPECT_GT(wrong, 0);
}

// As blocks at the edge of a sparse layer have it.
TEST(SelfCheck, PassesARowOfGradientsThatHasNone) {
  sparse::Csr<float> gradient;
  gradient.rows = gradient.cols = 2;
  gradient.row_begin = {0, 1, 1};
  gradient.col = {1};
  Matrix<float> q_grad(2, 1), s(2, 1);
  q_grad(0, 0) = q_grad(1, 0) = 0.3f;
  s(0, 0) = s(1, 0) = 0.7f;
  gradient.values = {0.3f * 0.7f};
  const verify::Rounding rounding{DataType::Float, DataType::Float, 1};
  const auto check = [&] {
    return verify::check_gradient<float>(gradient, gradient.values, std::as_const(q_grad).view(),
                                         std::as_const(s).view(), rounding);
  };
  EXPECT_TRUE(check().ok()) << to_string(check());
  EXPECT_FALSE(check().exact);
  gradient.values = {0.3f};
  EXPECT_EQ(check().wrong_rows, 1);
}

// The layer keeps sums of its weights, which must follow every change of a value.
TEST(SelfCheck, FollowsNewValuesAndPatterns) {
  for (const bool separate : {false, true}) {
    const LayerCase c = spilling_case({1, 1}, separate, separate);
    const auto executor = make_executor(1);
    runtime::FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                                  *executor);
    const Operands<float> in(c);
    Matrix<float> q(c.weights.rows, c.batch), s_grad(c.weights.cols, c.batch);
    verify::Checksums checksums;
    device::Ledger ledger;
    const auto expect_agreement = [&](const char* change) {
      TilePass options;
      options.pass.self_check = &checksums;
      ASSERT_TRUE(layer.forward<float>(in.s.view(), q.view(), options, ledger)) << change;
      EXPECT_EQ(checksums.recomputed, 0) << change;
      ASSERT_TRUE(layer.grad_a<float>(in.q_grad.view(), s_grad.view(), options, ledger)) << change;
      EXPECT_EQ(checksums.recomputed, 0) << change;
    };
    ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
    expect_agreement("set_weights");
    layer.set_values(std::vector<float>(c.weights.values.size(), 0.73f));
    expect_agreement("set_values");
    const std::int32_t row = c.weights.row_begin[1] > 0 ? 0 : 1;
    const sparse::PatternChange change{.removed = {{row, c.weights.col[0]}}};
    ASSERT_FALSE(layer.update_weights(change));
    expect_agreement("update_weights");
    ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
    expect_agreement("set_weights again");
  }
}

TEST(SelfCheck, ChecksEveryGroupAndLayoutOfALayer) {
  Problem problem{.size = {2, 30, 44, 5}, .density = 0.3, .grad_a = true, .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, planner::sparse_options());
  const auto executor = make_executor(1);
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const std::vector<sparse::Csr<float>> weights{sparse::random_pattern(30, 44, {1, 1}, 0.3, 1),
                                                sparse::random_pattern(30, 44, {1, 1}, 0.3, 2)};
  ASSERT_FALSE(layer.set_weights(sparse::checked(weights)));
  const auto s = random_matrix<Half>(88, 5, 3), q_grad = random_matrix<Half>(60, 5, 4);
  Matrix<Half> q(60, 5), s_grad(88, 5);
  std::vector<float> gradients(std::size_t(layer.values()));
  verify::Checksums checksums;
  device::Ledger ledger;
  ASSERT_TRUE(layer.forward<Half>(s.view(), q.view(), {.self_check = &checksums}, ledger));
  EXPECT_EQ(checksums.compared, 2 * 5);
  ASSERT_TRUE(layer.grad_a<Half>(q_grad.view(), s_grad.view(), {.self_check = &checksums}, ledger));
  EXPECT_EQ(checksums.compared, 2 * 5);
  ASSERT_TRUE(
      layer.grad_w<Half>(q_grad.view(), s.view(), gradients, {.self_check = &checksums}, ledger));
  EXPECT_EQ(checksums.compared, 2 * 1) << "one row in 128 of each group";
  EXPECT_TRUE(checksums.ok());
}

}  // namespace
}  // namespace tessera::runtime
