#include "tessera/partitioner/saved_weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/saved_weights.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/runtime/two_layouts.hpp"
#include "tessera/tests/support/archives.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::runtime {
namespace {

using partitioner::SavedWeights;
using testing::HasSubstr;

// A layer with weights that are encoded.
struct Case {
  std::string name;
  Problem problem;
  planner::Plan plan;
  device::Machine machine;
  partitioner::EncodeOptions options = {};
};

Problem problem_of(Dims size, BlockShape block, DataType type) {
  return {.size = size,
          .block = block,
          .density = 0.3,
          .data_type = type,
          .grad_a = true,
          .grad_w = true};
}

Case planned(std::string name, const Problem& problem, const planner::Options& options = {},
             std::int64_t tiles = 16) {
  Case c{std::move(name), problem, {}, device::machine_preset("gc200")};
  c.machine.tiles = tiles;
  planner::Options own = options;
  own.per_pass_plans = false;
  own.constraints.use_dense = options.constraints.use_dense.value_or(false);
  c.plan = planner::plan_or_throw(problem, c.machine, own);
  return c;
}

std::vector<Case> cases() {
  planner::Options roomy;
  roomy.meta_info_bucket_oversize_proportion = 1.0;
  std::vector<Case> all{
      planned("elements, half", problem_of({1, 40, 56, 8}, {1, 1}, DataType::Half)),
      planned("blocks, float", problem_of({1, 40, 56, 8}, {4, 4}, DataType::Float)),
      planned("bfloat16", problem_of({1, 40, 56, 8}, {8, 8}, DataType::BFloat16)),
      planned("sides that are no multiple of the block",
              problem_of({1, 37, 51, 8}, {4, 4}, DataType::Half)),
      planned("groups", problem_of({3, 24, 20, 8}, {1, 1}, DataType::Half), roomy),
      planned("spills", problem_of({1, 40, 56, 8}, {1, 1}, DataType::Float), roomy)};
  all.back().options.force_spills = true;
  const TwoLayouts two = two_layouts(problem_of({1, 64, 48, 8}, {1, 1}, DataType::Half), true, 16);
  all.push_back({"two layouts", two.problem, two.plan, two.machine});
  return all;
}

std::vector<sparse::Csr<float>> weights_for(const Problem& problem, std::uint64_t seed) {
  const Dims whole = problem.size_in_blocks();
  std::vector<sparse::Csr<float>> all;
  for (std::int64_t g = 0; g < problem.size.g; ++g) {
    all.push_back(sparse::random_pattern(whole.x, whole.y, problem.block, 0.3, seed + g));
    Matrix<float> values = random_matrix<float>(1, std::ssize(all.back().values), seed + g);
    std::copy(values.elements().begin(), values.elements().end(), all.back().values.begin());
  }
  return all;
}

FullyConnected layer_of(const Case& c, Executor& executor) {
  return {c.problem, c.plan, c.machine, device::ExchangeMode::Share, executor};
}

FullyConnected encoded_layer(const Case& c, Executor& executor) {
  FullyConnected layer = layer_of(c, executor);
  EXPECT_FALSE(layer.set_weights(sparse::checked(weights_for(c.problem, 3)), c.options)) << c.name;
  return layer;
}

// All that a user sees of a layer: results and ledgers of its passes.
struct Seen {
  std::vector<float> results;
  std::vector<device::Ledger> ledgers;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen(FullyConnected& layer, const Problem& problem) {
  return with_type(problem.data_type, [&](auto zero) {
    using T = decltype(zero);
    const Dims& size = problem.size;
    const auto s = random_matrix<T>(size.g * size.y, size.z, 5);
    const auto q_grad = random_matrix<T>(size.g * size.x, size.z, 6);
    Matrix<T> q(size.g * size.x, size.z), s_grad(size.g * size.y, size.z);
    std::vector<float> gradients(std::size_t(layer.values()));
    Seen all;
    all.ledgers.push_back(layer.forward<T>(s.view(), q.view()));
    all.ledgers.push_back(layer.grad_a<T>(q_grad.view(), s_grad.view()));
    all.ledgers.push_back(layer.grad_w<T>(q_grad.view(), s.view(), gradients));
    for (const Matrix<T>* matrix : {&q, &s_grad})
      for (const T value : matrix->elements()) all.results.push_back(float(value));
    all.results.insert(all.results.end(), gradients.begin(), gradients.end());
    return all;
  });
}

SavedWeights through_a_file(const FullyConnected& layer) {
  return test::state_of<SavedWeights>(test::saved_file(layer.saved_weights()), "file");
}

TEST(SavedWeights, GiveEveryLayerTheSameBitsAndCostsWithoutEncoding) {
  const auto executor = make_executor(2);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    FullyConnected layer = encoded_layer(c, *executor);
    const SavedWeights saved = through_a_file(layer);
    FullyConnected restored = layer_of(c, *executor);
    restored.restore_weights(saved);
    EXPECT_TRUE(seen(restored, c.problem) == seen(layer, c.problem));
    for (std::int64_t g = 0; g < c.problem.size.g; ++g)
      for (const Pass pass : {Pass::Fwd, Pass::GradA}) {
        const partitioner::Buckets &a = layer.buckets_of(pass, g),
                                   &b = restored.buckets_of(pass, g);
        EXPECT_EQ(a.meta, b.meta);
        EXPECT_EQ(a.grad_a_meta, b.grad_a_meta);
        EXPECT_EQ(a.source, b.source);
        EXPECT_EQ(a.travel, b.travel);
        EXPECT_EQ(a.stats.steps, b.stats.steps);
        EXPECT_EQ(a.stats.moved_blocks, b.stats.moved_blocks);
      }
    EXPECT_EQ(test::saved_file(through_a_file(restored)), test::saved_file(saved));
    // The values are those of the layer's type.
    const auto found = weights_of(saved, c.problem, c.plan, c.machine, *executor);
    const auto given = weights_for(c.problem, 3);
    with_type(c.problem.data_type, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t g = 0; g < given.size(); ++g) {
        sparse::Csr<float> rounded = given[g];
        for (float& value : rounded.values) value = float(T(value));
        EXPECT_EQ(*found[g], rounded);
        EXPECT_EQ(restored.weights(std::int64_t(g)), rounded);
      }
    });
  }
}

TEST(SavedWeights, CanBeChangedLikeEncodedOnes) {
  const auto executor = make_executor(1);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    FullyConnected layer = encoded_layer(c, *executor), restored = layer_of(c, *executor);
    restored.restore_weights(through_a_file(layer));
    const sparse::Csr<float>& weights = layer.weights();
    sparse::PatternChange change;
    for (std::int64_t row = 0; change.removed.empty(); ++row)
      if (weights.row_begin[std::size_t(row)] < weights.row_begin[std::size_t(row) + 1])
        change.removed.push_back(
            {std::int32_t(row), weights.col[std::size_t(weights.row_begin[std::size_t(row)])]});
    for (FullyConnected* one : {&layer, &restored}) {
      ASSERT_FALSE(one->update_weights(change));
      const auto values = random_matrix<float>(1, std::ssize(one->weights().values), 9);
      one->set_values({values.elements().data(), values.elements().size()});
    }
    EXPECT_TRUE(seen(restored, c.problem) == seen(layer, c.problem));
  }
}

// The smallest layer whose file has every part.
Case small_case() {
  return planned("small", problem_of({1, 6, 5, 2}, {1, 1}, DataType::Half), {}, 4);
}

// The heads lie under a right checksum; tests/io/archive_test.cpp damages files.
TEST(SavedWeights, WithAHeadThatLiesAreRefused) {
  const auto executor = make_executor(1);
  FullyConnected layer = encoded_layer(small_case(), *executor);
  const std::string file = test::saved_file(layer.saved_weights());
  const auto lie = [&](const std::string& old, const std::string& now,
                       ErrorCode code = ErrorCode::BadInput) {
    const std::string changed = test::with_text(file, old, now);
    EXPECT_NE(changed, "") << old;
    return test::message_of(
        [&] { layer.restore_weights(test::state_of<SavedWeights>(changed, "w.tsw")); }, code);
  };
  EXPECT_THAT(lie(R"("type\":\"half\")", R"("type\":\"hall\")"), HasSubstr("w.tsw: "));
  EXPECT_THAT(lie(R"(layout1.groups\":1)", R"(layout1.groups\":2)"),
              HasSubstr("field layout1.groups is 2; it must be a whole number in 1..1"));
  EXPECT_THAT(lie(R"("groups\":1)", R"("groups\":2)"), HasSubstr("group2.rows is missing"));
  EXPECT_THAT(lie(R"("layouts\":1)", R"("layouts\":3)"), HasSubstr("field layouts is 3"));
  EXPECT_THAT(lie(R"(group1.rows\":6)", R"(group1.rows\":5)"),
              HasSubstr("list group1.row_begin has the type I64 and the shape [7]"));
  EXPECT_THAT(lie(R"(wide_words\":false)", R"(wide_words\":true )"),
              HasSubstr("list layout1.group1.words has the type U16"));
  EXPECT_THAT(lie("words of 16 bits", "words of 32 bits", ErrorCode::InvalidArgument),
              HasSubstr("encoded for another plan"));
}

TEST(SavedWeights, WithListsOfOtherLengthsAreRefused) {
  const auto executor = make_executor(1);
  FullyConnected layer = encoded_layer(small_case(), *executor);
  const Seen before = seen(layer, small_case().problem);
  for (int list = 0; list < 3; ++list) {
    SavedWeights saved = layer.saved_weights();
    if (list == 0) saved.values[0].resize(saved.values[0].size() - 2);
    if (list == 1) std::get<0>(saved.layouts[0].groups[0].meta).pop_back();
    if (list == 2) saved.layouts[0].groups[0].meta = std::vector<std::uint32_t>(9);
    EXPECT_THROW(layer.restore_weights(saved), Error) << list;
  }
  EXPECT_TRUE(seen(layer, small_case().problem) == before);
}

// Values of an encoded file are those of a matrix, which must be finite.
TEST(SavedWeights, WithAValueThatIsNotFiniteAreNotSaved) {
  const auto executor = make_executor(1);
  SavedWeights saved = encoded_layer(small_case(), *executor).saved_weights();
  saved.values[0][0] = saved.values[0][1] = std::byte{0x7e};  // a half that is NaN
  EXPECT_THAT(test::message_of([&] { test::saved_file(saved); }, ErrorCode::InvalidArgument),
              HasSubstr("number 0 of list group1.values is not finite"));
}

TEST(SavedWeights, OfAnotherLayerPlanOrMachineAreRefusedByTheFieldThatDiffers) {
  const auto executor = make_executor(1);
  const Problem problem = problem_of({1, 40, 56, 8}, {4, 4}, DataType::Half);
  const SavedWeights saved = through_a_file(encoded_layer(planned("", problem), *executor));
  const auto refused = [&](const Case& c) {
    FullyConnected layer = encoded_layer(c, *executor);
    const Seen before = seen(layer, c.problem);
    const std::string message = test::refusal([&] { layer.restore_weights(saved); });
    EXPECT_TRUE(seen(layer, c.problem) == before) << message;
    return message;
  };
  EXPECT_THAT(refused(planned("", problem_of({1, 44, 56, 8}, {4, 4}, DataType::Half))),
              HasSubstr("40 x 56"));
  EXPECT_THAT(refused(planned("", problem_of({1, 40, 56, 8}, {8, 8}, DataType::Half))),
              HasSubstr("4x4 blocks"));
  EXPECT_THAT(refused(planned("", problem_of({2, 40, 56, 8}, {4, 4}, DataType::Half))),
              HasSubstr("groups are 1, but 2 here"));
  EXPECT_THAT(refused(planned("", problem_of({1, 40, 56, 8}, {4, 4}, DataType::BFloat16))),
              HasSubstr("values are half, but bfloat16 here"));
  planner::Options other;
  other.meta_info_bucket_oversize_proportion = 3;
  EXPECT_THAT(refused(planned("", problem, other)), HasSubstr("encoded for another plan"));
  const TwoLayouts two = two_layouts(problem, true, 16);
  EXPECT_THAT(refused({"", two.problem, two.plan, two.machine}),
              HasSubstr("layouts are 1, but 2 here"));
  planner::Options dense;
  dense.constraints.use_dense = true;
  const Case dense_case = planned("", problem, dense);
  FullyConnected without_buckets = layer_of(dense_case, *executor);
  EXPECT_THAT(test::refusal([&] { without_buckets.restore_weights(saved); }), HasSubstr("dense"));
  EXPECT_THAT(test::refusal([&] { without_buckets.saved_weights(); }), HasSubstr("dense"));
  FullyConnected empty = layer_of(planned("", problem), *executor);
  EXPECT_THAT(test::refusal([&] { empty.saved_weights(); }), HasSubstr("set_weights first"));
}

// Contents that contradict each other, in a file whose checksum is right.
TEST(SavedWeights, AreRefusedWhereWordsPatternsAndStatisticsDisagree) {
  const auto executor = make_executor(1);
  const Case c = small_case();
  FullyConnected layer = encoded_layer(c, *executor);
  const Seen before = seen(layer, c.problem);
  const auto expect_refused = [&](const char* what, const auto& change, const char* message) {
    SavedWeights saved = through_a_file(layer);
    change(saved);
    const auto read = test::state_of<SavedWeights>(test::saved_file(saved), "file");
    EXPECT_THAT(test::message_of([&] { layer.restore_weights(read); }, ErrorCode::BadInput),
                HasSubstr(message))
        << what;
  };
  expect_refused(
      "a column of the pattern", [](SavedWeights& s) { ++s.patterns[0].col.back(); }, "");
  expect_refused(
      "rows out of order", [](SavedWeights& s) { s.patterns[0].row_begin[1] = 1000; }, "");
  expect_refused(
      "blocks that moved", [](SavedWeights& s) { s.layouts[0].groups[0].stats.moved_blocks = 1; },
      "the statistics say that 1 of");
  expect_refused(
      "fewer blocks", [](SavedWeights& s) { --s.layouts[0].groups[0].stats.blocks; },
      "the statistics say");
  // Any change of a word is an error, or gives another pattern, which is one too. Words of 0 may be
  // behind the end of a bucket, where nobody reads them.
  const auto words = std::get<std::vector<std::uint16_t>>(layer.buckets().meta);
  for (std::size_t word = 0; word < words.size(); ++word)
    if (words[word] != 0)
      expect_refused(
          "a word",
          [&](SavedWeights& s) {
            std::get<std::vector<std::uint16_t>>(s.layouts[0].groups[0].meta)[word] ^= 1;
          },
          "");
  EXPECT_TRUE(seen(layer, c.problem) == before);
}

}  // namespace
}  // namespace tessera::runtime
