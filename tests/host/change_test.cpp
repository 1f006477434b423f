// HostLayer::update_weights and what is left after a call that fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/host/layer_case.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::host {
namespace {

using test::Results;

template <class T>
void expect_update_as_set(BlockShape block, double before, double after, DenseChoice dense) {
  SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << " from " << before << " to "
                                  << after << " dense " << int(dense));
  const Problem problem = problem_of<T>({2, 70, 90, 40}, block);
  Case<T> updated{problem, {.dense = dense}}, set{problem, {.dense = dense}};
  std::vector<sparse::Csr<float>> weights = weights_of(problem, before, 3);
  updated.layer.set_weights(sparse::checked(weights));
  updated.run();
  for (const std::int64_t group : {1, 0}) {
    sparse::Csr<float>& own = weights[std::size_t(group)];
    const sparse::PatternChange change = change_to(own, after, 20);
    ASSERT_FALSE(change.removed.empty() && change.added.empty());
    EXPECT_FALSE(updated.layer.update_weights(change, group));
    own = sparse::with_change(own, change);
    EXPECT_EQ(updated.layer.weights(group), own);
    set.layer.set_weights(sparse::checked(weights));
    EXPECT_EQ(updated.run(), set.run());
    for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
      EXPECT_EQ(updated.layer.is_dense(pass), set.layer.is_dense(pass));
      EXPECT_EQ(updated.layer.cells(pass), set.layer.cells(pass));
    }
  }
  for (float& v : weights[1].values) v *= 0.5f;
  updated.layer.set_values(weights[1].values, 1);
  set.layer.set_weights(sparse::checked(weights));
  EXPECT_EQ(updated.run(), set.run());
}

TEST(HostChange, HasTheBitsOfSettingTheChangedWeights) {
  test::Cases cases;
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Always, DenseChoice::Auto})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {3, 5}})
      for (const double after : {0.0, 0.02, 0.2, 0.25, 1.0}) {
        if (!cases.next()) continue;
        expect_update_as_set<float>(block, 0.2, after, dense);
        expect_update_as_set<Half>(block, 0.2, after, dense);
      }
}

// Moves `count` blocks of each of some rows to free places of the same row or of another one.
sparse::PatternChange some_moves(const sparse::Csr<float>& from, std::int64_t count,
                                 std::uint64_t seed) {
  sparse::PatternChange all =
      change_to(from, double(from.blocks()) / double(from.block_rows() * from.block_cols()), seed);
  Random random(seed);
  const auto keep = [&](std::vector<sparse::BlockAt>& places) {
    while (std::ssize(places) > count)
      places.erase(places.begin() + random.below(std::ssize(places)));
  };
  keep(all.removed);
  keep(all.added);
  return all;
}

// The number of values decides how many rows a cell of one thread has, which those that are there
// keep.
TEST(UpdateWeights, StaysInTheCellsOfOneThreadWithFewerBlocks) {
  const Problem problem = problem_of<float>({1, 1024, 1024, 8}, {4, 4});
  HostCpu cpu = kTiny;
  cpu.l2 = Bytes(1 << 20);
  Case<float> updated{problem, {}, cpu, make_executor(1)}, set{problem, {}, cpu, make_executor(1)};
  const sparse::Csr<float> weights = weights_of(problem, 0.2, 3)[0];
  updated.layer.set_weights(weights);
  const std::int32_t* const storage = updated.layer.buckets().source.data();
  sparse::PatternChange change = some_moves(weights, weights.blocks() / 20, 1);
  change.added.clear();
  updated.layer.update_weights(change);
  set.layer.set_weights(sparse::with_change(weights, change));
  ASSERT_NE(updated.layer.buckets().grid.splits.x, set.layer.buckets().grid.splits.x);
  EXPECT_EQ(updated.layer.buckets().source.data(), storage);
  EXPECT_EQ(updated.run(), set.run());
}

// Few moves stay within the cells, whose storage is then kept, and many rounds leave no trace.
template <class T>
void expect_moves_in_place(BlockShape block, std::int64_t moves) {
  SCOPED_TRACE(testing::Message() << "block " << block.rows << ", " << moves << " moves");
  const Problem problem = problem_of<T>({1, 160, 240, 40}, block);
  Case<T> updated{problem, {}}, set{problem, {}};
  sparse::Csr<float> weights = weights_of(problem, 0.3, 3)[0];
  updated.layer.set_weights(weights);
  constexpr std::uint64_t kRounds = test::kIsSanitized ? 3 : 10;
  std::uint64_t in_place = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const std::int32_t* const storage = updated.layer.buckets().source.data();
    const sparse::PatternChange change = some_moves(weights, moves, round);
    updated.layer.update_weights(change);
    in_place += storage == updated.layer.buckets().source.data();
    weights = sparse::with_change(weights, change);
    for (std::size_t i = 0; i < weights.values.size(); i += 3) weights.values[i] += 1.0f;
    updated.layer.set_values(weights.values);
    set.layer.set_weights(weights);
    EXPECT_EQ(updated.layer.weights(), weights);
    EXPECT_EQ(updated.run(), set.run());
  }
  EXPECT_GE(in_place + 2, kRounds);
}

TEST(HostChange, WritesFewMovesIntoTheCellsInPlace) {
  for (const std::int64_t moves : {0, 1, 6}) {
    expect_moves_in_place<float>({1, 1}, moves);
    expect_moves_in_place<Half>({1, 1}, moves);
    expect_moves_in_place<float>({4, 5}, moves);
    expect_moves_in_place<BFloat16>({4, 5}, moves);
  }
}

TEST(HostChange, DecidesAgainWhichPassesAreDense) {
  const Problem problem = problem_of<float>({2, 256, 256, 64}, {1, 1});
  Case<float> c{problem, {.dense = DenseChoice::Auto}};
  const auto weights = weights_of(problem, 0.01, 3);
  c.layer.set_weights(sparse::checked(weights));
  ASSERT_FALSE(c.layer.is_dense(Pass::Fwd));
  const Results<float> sparse_results = c.run();
  const sparse::PatternChange change = change_to(weights[0], 1.0, 1);
  c.layer.update_weights(change, 0);
  EXPECT_TRUE(c.layer.is_dense(Pass::Fwd));
  c.layer.update_weights({change.added, change.removed}, 0);
  EXPECT_FALSE(c.layer.is_dense(Pass::Fwd));
  EXPECT_EQ(c.run(), sparse_results);
}

template <class Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing is thrown";
  return ErrorCode::Internal;
}

TEST(HostChange, LeavesTheLayerAsItWasWhenItIsRefused) {
  const Problem problem = problem_of<float>({2, 30, 40, 9}, {1, 1});
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Always}) {
    Case<float> c{problem, {.dense = dense}};
    const auto weights = weights_of(problem, 0.3, 3);
    EXPECT_EQ(code_of([&] { c.layer.update_weights({}); }), ErrorCode::InvalidArgument);
    c.layer.set_weights(sparse::checked(weights));
    const Results<float> before = c.run();
    const sparse::BlockAt stored{0, weights[0].col[0]};
    EXPECT_EQ(code_of([&] { c.layer.update_weights({{}, {stored}}); }), ErrorCode::InvalidArgument);
    EXPECT_EQ(code_of([&] { c.layer.update_weights({{}, {{5, 40}}}); }),
              ErrorCode::InvalidArgument);
    EXPECT_EQ(code_of([&] { c.layer.update_weights({}, 2); }), ErrorCode::InvalidArgument);
    auto outside = weights;
    outside[1].col.back() = 4000;  // must not be read as a place
    EXPECT_EQ(code_of([&] { c.layer.set_weights(sparse::checked(outside)); }), ErrorCode::BadInput);
    auto unsorted = weights;
    std::swap(unsorted[1].col[0], unsorted[1].col[1]);
    EXPECT_EQ(code_of([&] { c.layer.set_weights(sparse::checked(unsorted)); }),
              ErrorCode::BadInput);
    EXPECT_EQ(c.layer.weights(1), weights[1]);
    EXPECT_EQ(c.run(), before);
  }
}

// Both ways of making a change: a few moves change cells in place, and many blocks encode again.
std::vector<sparse::PatternChange> small_and_large_change(const sparse::Csr<float>& from) {
  return {some_moves(from, 3, 7), change_to(from, 0.9, 7)};
}

TEST(HostPreparedUpdate, ChangesSeveralLayersTogether) {
  const Problem problem = problem_of<float>({2, 40, 48, 9}, {1, 1});
  const auto weights = weights_of(problem, 0.2, 3);
  for (const sparse::PatternChange& change : small_and_large_change(weights[1])) {
    Case<float> first{problem, {}}, second{problem, {}}, expected{problem, {}};
    for (Case<float>* c : {&first, &second, &expected})
      c->layer.set_weights(sparse::checked(weights));
    const Results<float> before = first.run();
    auto one = first.layer.prepare_update(change, 1), two = second.layer.prepare_update(change, 1);
    EXPECT_EQ(first.run(), before);
    EXPECT_EQ(first.layer.weights(1), weights[1]);
    first.layer.commit(std::move(one));
    second.layer.commit(std::move(two));
    expected.layer.set_weights(
        sparse::checked(std::vector{weights[0], sparse::with_change(weights[1], change)}));
    EXPECT_EQ(first.run(), expected.run());
    EXPECT_EQ(second.run(), expected.run());
    EXPECT_EQ(first.layer.weights(1), expected.layer.weights(1));
  }
}

TEST(HostPreparedUpdate, IsRefusedByAnotherLayerAndOnceTheLayerHasChanged) {
  const Problem problem = problem_of<float>({1, 40, 48, 9}, {1, 1});
  const auto weights = weights_of(problem, 0.2, 3);
  for (const sparse::PatternChange& change : small_and_large_change(weights[0])) {
    Case<float> c{problem, {}}, other{problem, {}};
    c.layer.set_weights(sparse::checked(weights));
    other.layer.set_weights(sparse::checked(weights));
    const Results<float> before = c.run();
    const auto refuses = [&](HostLayer& layer, HostLayer::PreparedUpdate& update) {
      EXPECT_EQ(code_of([&] { layer.commit(std::move(update)); }), ErrorCode::InvalidArgument);
    };
    auto stale = c.layer.prepare_update(change), twin = c.layer.prepare_update(change);
    refuses(other.layer, stale);
    c.layer.set_values(weights[0].values);
    refuses(c.layer, stale);
    auto moved = std::move(stale);
    refuses(c.layer, stale);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(c.run(), before);
    EXPECT_EQ(other.run(), before);
    twin = c.layer.prepare_update(change);
    auto second = c.layer.prepare_update(change);
    c.layer.commit(std::move(twin));
    refuses(c.layer, second);
    EXPECT_EQ(c.layer.weights(), sparse::with_change(weights[0], change));
  }
}

// Every allocation of the call fails once: the layer must then be as it was.
template <class Call>
void expect_all_or_nothing(Case<float>& c, const Call& call) {
  const Results<float> before = c.run();
  const std::vector<sparse::Csr<float>> weights{c.layer.weights(0), c.layer.weights(1)};
  const auto check = [&] {
    ASSERT_EQ(c.layer.weights(0), weights[0]);
    ASSERT_EQ(c.layer.weights(1), weights[1]);
    ASSERT_EQ(c.run(), before);
  };
  // All of them take twenty seconds with a sanitizer.
  const long failures = test::fail_each_allocation(call, check, test::kIsSanitized ? 5 : 1);
  EXPECT_GT(failures, 10);
}

TEST(HostChange, LeavesTheLayerAsItWasWhenMemoryRunsOut) {
  const Problem problem = problem_of<float>({2, 40, 48, 9}, {1, 1});
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Auto}) {
    Case<float> c{problem, {.dense = dense}};
    const auto weights = weights_of(problem, 0.1, 3), others = weights_of(problem, 0.9, 9);
    c.layer.set_weights(sparse::checked(weights));
    expect_all_or_nothing(c, [&] { c.layer.set_weights(sparse::checked(others)); });
    EXPECT_EQ(c.layer.weights(1), others[1]);
    c.layer.set_weights(sparse::checked(weights));
    const sparse::PatternChange change = change_to(weights[0], 0.9, 7);
    expect_all_or_nothing(c, [&] { c.layer.update_weights(change, 0); });
    EXPECT_EQ(c.layer.weights(0), sparse::with_change(weights[0], change));
    c.layer.set_weights(sparse::checked(weights));
    const sparse::PatternChange moves = some_moves(weights[0], 5, 7);
    expect_all_or_nothing(c, [&] { c.layer.update_weights(moves, 0); });
    EXPECT_EQ(c.layer.weights(0), sparse::with_change(weights[0], moves));
  }
}

TEST(HostChange, TakesNewValuesWithoutAllocating) {
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Always})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}}) {
      Case<float> c{problem_of<float>({1, 96, 80, 17}, block), {.dense = dense}};
      const auto weights = weights_of(c.problem, 0.3, 3);
      c.layer.set_weights(sparse::checked(weights));
      const long before = test::allocations();
      c.layer.set_values(weights[0].values);
      c.layer.change_values([](std::span<float> part, std::int64_t) {
        for (float& value : part) value *= 0.5f;
      });
      EXPECT_EQ(test::allocations() - before, 0);
    }
}

template <class T>
class HostValues : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(HostValues, AllTypes);

// A step on parts leaves the layer as a step on all values does, for any number of threads.
TYPED_TEST(HostValues, ChangePartByPartAsAllAtOnce) {
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Always})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {2, 5}, {40, 30}})
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(testing::Message() << "block " << block.rows << ", " << threads << " threads");
        const Problem problem = problem_of<TypeParam>({2, 120, 90, 17}, block);
        const auto weights = weights_of(problem, 0.3, 3);
        Case<TypeParam> expected{problem, {.dense = dense}}, stepped{problem, {.dense = dense}};
        expected.layer.set_weights(sparse::checked(weights));
        stepped.executor = make_executor(ExecutorKind::Threads, threads);
        stepped.layer = HostLayer(problem, kTiny, *stepped.executor, {.dense = dense});
        stepped.layer.set_weights(sparse::checked(weights));
        for (std::int64_t g = 0; g < 2; ++g) {
          std::vector<float> values = weights[std::size_t(g)].values;
          for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.01f * float(i % 97);
          expected.layer.set_values(values, g);
          std::vector<std::atomic<int>> calls(values.size());
          const auto change = [&](std::span<float> part, std::int64_t first) {
            for (std::size_t i = 0; i < part.size(); ++i) {
              const std::size_t at = std::size_t(first) + i;
              part[i] += 0.01f * float(at % 97);
              ++calls[at];
            }
          };
          stepped.layer.change_values(change, g);
          for (const std::atomic<int>& c : calls) ASSERT_EQ(c, 1);
          EXPECT_EQ(stepped.layer.weights(g), expected.layer.weights(g));
        }
        EXPECT_EQ(stepped.run(), expected.run());
      }
}

// A row of twelve values, and `others` rows of one, of 24: panels are wider where most are empty. A
// layer keeps those of its first pattern, and a last panel of one column adds up in another order.
sparse::Csr<float> nearly_empty(std::int64_t others) {
  sparse::Csr<float> matrix{.rows = 24, .cols = 12, .row_begin = {0}};
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int32_t col = 0; col < (row == 0 ? 12 : row <= others ? 1 : 0); ++col)
      matrix.col.push_back(col);
    matrix.row_begin.push_back(std::ssize(matrix.col));
  }
  for (std::size_t i = 0; i < matrix.col.size(); ++i)
    matrix.values.push_back(0.37f + float(i * i % 7));
  return matrix;
}

TEST(HostChange, KeepsItsBitsWhereMostRowsBecomeEmptyOrNot) {
  for (const std::int64_t z : {192, 193, 449, 512})
    for (const auto& [before, after] : {std::pair{0, 9}, {9, 0}}) {
      const Problem problem = problem_of<float>({1, 24, 12, z}, {1, 1});
      Case<float> changed{problem, {}}, fresh{problem, {}};
      const sparse::Csr<float> from = nearly_empty(before);
      const sparse::PatternChange change = sparse::difference(from, nearly_empty(after));
      changed.layer.set_weights(from);
      EXPECT_FALSE(changed.layer.update_weights(change, 0));
      fresh.layer.set_weights(sparse::with_change(from, change));
      EXPECT_EQ(changed.run(), fresh.run()) << "z " << z << ", rows " << before << " to " << after;
    }
}

TEST(HostChange, KeepsLayoutsTrueToTheValuesWhenAStepThrows) {
  const Problem problem = problem_of<float>({1, 120, 90, 17}, {1, 1});
  Case<float> c{problem, {}}, expected{problem, {}};
  c.executor = make_executor(ExecutorKind::Threads, 2);  // two, also on one core
  c.layer = HostLayer(problem, kTiny, *c.executor, {});
  c.layer.set_weights(sparse::checked(weights_of(problem, 0.3, 3)));
  const auto change = [&](std::span<float> part, std::int64_t first) {
    std::fill(part.begin(), part.end(), 2.0f);
    if (first > 0) throw Error(ErrorCode::CheckFailed, "stop");
  };
  EXPECT_EQ(code_of([&] { c.layer.change_values(change); }), ErrorCode::CheckFailed);
  expected.layer.set_weights(c.layer.weights());
  EXPECT_EQ(c.run(), expected.run());
  EXPECT_EQ(code_of([&] { c.layer.change_values(change, 1); }), ErrorCode::InvalidArgument);
}

// Sixteen cells of this layer have about 205 blocks each, which 16-bit words can count; with spare
// capacity some cannot.
TEST(HostLayerCapacity, HasAnEighthMoreThanTheFullestCellOfBlocks) {
  const auto executor = make_executor(1);
  for (const double density : {0.045, 0.05, 0.055, 0.06}) {
    SCOPED_TRACE(density);
    const sparse::Csr<float> weights = sparse::random_pattern(4096, 4096, {16, 16}, density, 1);
    HostLayer layer({.size = {1, 4096, 4096, 128},
                     .block = {16, 16},
                     .density = density,
                     .data_type = DataType::Float},
                    read_host_cpu(), *executor);
    layer.set_weights(weights);
    const partitioner::TileGrid& grid = layer.buckets().grid;
    const std::int64_t rows = grid.x_range(0).size() / 16, cols = grid.y_range(0).size() / 16;
    std::vector<std::int64_t> blocks(std::size_t(grid.buckets()));
    for (std::int64_t r = 0; r < weights.block_rows(); ++r)
      for (auto b = weights.row_begin[std::size_t(r)]; b < weights.row_begin[std::size_t(r) + 1];
           ++b)
        ++blocks[std::size_t(grid.bucket_index(r / rows, weights.col[std::size_t(b)] / cols, 0))];
    const std::int64_t fullest = *std::max_element(blocks.begin(), blocks.end());
    EXPECT_EQ(grid.blocks, fullest + fullest / 8);
  }
}

}  // namespace
}  // namespace tessera::host
