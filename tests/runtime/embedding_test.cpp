// Looks up and updates rows of encoded weights, and compares with the weights themselves.
#include "tessera/runtime/embedding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/embedding.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

using Ids = std::vector<std::int64_t>;

Ids random_ids(std::int64_t count, std::int64_t rows, Random& random) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(random.below(rows));
  return ids;
}

// The weights of a case as a dense matrix in the layer's type.
template <class T>
Matrix<float> dense_weights(const sparse::Csr<float>& weights) {
  Matrix<float> dense = sparse::to_dense(weights);
  for (float& value : dense.elements()) value = float(T(value));
  return dense;
}

template <class T>
Matrix<T> small_whole_numbers(std::int64_t rows, std::int64_t cols, Random& random) {
  Matrix<T> matrix(rows, cols);
  for (T& value : matrix.elements()) value = T(float(random.below(5) - 2));
  return matrix;
}

// A case with the settings of its embedding.
struct EmbeddingCase {
  LayerCase layer;
  std::int64_t ids = 20;
  EmbeddingOptions options = {.ids = 8};
  Placement placement = Placement::AtHome;

  planner::Plan plan() const {
    planner::Plan plan = layer.plan();
    plan.operand_placement = placement;
    return plan;
  }
};

struct Outcome {
  std::vector<float> slices, weights;
  std::vector<device::Ledger> ledgers;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

template <class T>
Outcome run_embedding(const EmbeddingCase& c, const How& how) {
  const auto executor = make_executor(how.executor, how.threads);
  const Problem problem = c.layer.problem();
  const planner::Plan plan = c.plan();
  const device::Machine machine = c.layer.machine();
  FullyConnected layer(problem, plan, machine, how.mode, *executor);
  EXPECT_FALSE(layer.set_weights(c.layer.weights, {.force_spills = c.layer.force_spills}));
  Embedding embedding(layer, problem, plan, machine, how.mode, *executor, c.options);
  Random random(c.layer.seed + 3);
  const Ids ids = random_ids(c.ids, problem.size.x, random);
  Matrix<T> out(c.ids, problem.size.y + 3);  // the last columns belong to somebody else
  for (T& value : out.elements()) value = T(7);
  Outcome outcome;
  outcome.ledgers.push_back(
      embedding.embedding_slice<T>(ids, out.view().sub({0, c.ids}, {0, problem.size.y})));
  Matrix<float> expected = dense_weights<T>(c.layer.weights);
  for (std::int64_t i = 0; i < c.ids; ++i)
    for (std::int64_t y = 0; y < out.cols(); ++y)
      EXPECT_EQ(float(out(i, y)), y < problem.size.y ? expected(ids[std::size_t(i)], y) : 7)
          << i << ", " << y;
  outcome.slices = as_float(out);

  const auto slices = small_whole_numbers<T>(c.ids, problem.size.y, random);
  outcome.ledgers.push_back(embedding.embedding_update_add<T>(ids, slices.view(), 0.5f));
  Matrix<float> stored = sparse::to_dense(c.layer.weights);
  for (std::int64_t i = 0; i < c.ids; ++i)
    for (std::int64_t y = 0; y < problem.size.y; ++y)
      expected(ids[std::size_t(i)], y) += 0.5f * float(slices(i, y));
  const sparse::Csr<float>& updated = layer.weights();
  EXPECT_EQ(updated.col, c.layer.weights.col);
  for (std::int64_t r = 0; r < updated.block_rows(); ++r)
    for (auto b = updated.row_begin[std::size_t(r)]; b < updated.row_begin[std::size_t(r) + 1]; ++b)
      for (std::int64_t e = 0; e < updated.block.area(); ++e) {
        const std::int64_t x = r * updated.block.rows + e / updated.block.cols;
        const std::int64_t y =
            updated.col[std::size_t(b)] * updated.block.cols + e % updated.block.cols;
        if (x < problem.size.x && y < problem.size.y) {
          EXPECT_EQ(updated.values[std::size_t(b * updated.block.area() + e)], expected(x, y));
        }
      }
  // The next pass has the new weights.
  const Matrix<T> s = random_matrix<T>(problem.size.y, problem.size.z, 5);
  Matrix<T> q(problem.size.x, problem.size.z);
  layer.forward<T>(s.view(), q.view());
  const verify::Verdict verdict = verify::verify_product<T>(
      sparse::cropped(sparse::with_block(updated, {1, 1}), problem.size.x, problem.size.y),
      s.view(), std::as_const(q).view(), {c.layer.type, DataType::Float, plan.tiles_used()});
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  outcome.weights = updated.values;
  return outcome;
}

Outcome run_embedding(const EmbeddingCase& c, const How& how = {}) {
  SCOPED_TRACE(c.layer.name());
  return with_type(c.layer.type, [&]<class T>(T) { return run_embedding<T>(c, how); });
}

sparse::Csr<float> weights(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                           std::uint64_t seed) {
  return sparse::random_pattern(rows, cols, block, density, seed);
}

TEST(Embedding, LooksUpAndUpdatesRowsOverPartitionsTypesAndBlocks) {
  std::uint64_t seed = 1;
  for (const Dims partition :
       {Dims{1, 1, 1, 1}, {1, 3, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 4}, {1, 2, 3, 2}, {1, 5, 2, 2}})
    for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
      for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {2, 3}}) {
        const std::int64_t side = block.is_element() ? 1 : block.rows;
        EmbeddingCase c{
            .layer = {.weights = weights(30 * side, 20 * block.cols, block, 0.3, ++seed),
                      .batch = 8,
                      .type = type,
                      .partition = partition,
                      .seed = seed}};
        run_embedding(c);
      }
}

TEST(Embedding, TakesNoColumnsThatAreInTheLastBlocksOnly) {
  for (const BlockShape block : {BlockShape{4, 4}, {2, 3}})
    run_embedding({.layer = {.weights = weights(30 * block.rows, 20 * block.cols, block, 0.3, 9),
                             .batch = 8,
                             .partition = {1, 2, 3, 1},
                             .missing = {block.rows - 1, block.cols - 1}}});
}

TEST(Embedding, FindsBlocksThatHaveSpilled) {
  std::uint64_t seed = 50;
  for (const Dims partition : {Dims{1, 1, 1, 3}, {1, 4, 1, 1}, {1, 1, 4, 1}, {1, 3, 2, 2}})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
      run_embedding({.layer = {.weights = weights(48, 40, block, 0.4, ++seed),
                               .batch = 4,
                               .partition = partition,
                               .force_spills = true,
                               .seed = seed}});
}

TEST(Embedding, HasTheSameBitsInBothExchangeModesAndForAnyNumberOfThreads) {
  for (const bool spills : {false, true}) {
    const EmbeddingCase c{.layer = {.weights = weights(40, 36, {1, 1}, 0.3, 9),
                                    .batch = 4,
                                    .type = DataType::Half,
                                    .partition = {1, 3, 2, 2},
                                    .force_spills = spills,
                                    .seed = 9},
                          .placement = Placement::EvenSpread};
    const Outcome first = run_embedding(c);
    EXPECT_EQ(run_embedding(c, {.threads = 1}), first);
    EXPECT_EQ(run_embedding(c, {.mode = device::ExchangeMode::Isolate, .threads = 3}), first);
  }
}

TEST(Embedding, TakesAnyNumberOfIdsAndManyOfOnePart) {
  LayerCase layer{.weights = weights(32, 16, {1, 1}, 0.5, 4), .partition = {1, 4, 1, 1}};
  for (const std::int64_t count : {0, 1, 7, 8, 9, 100})
    run_embedding({.layer = layer, .ids = count, .options = {.ids = 8, .rows_per_part = 1}});
  const auto executor = make_executor(1);
  FullyConnected table(layer.problem(), layer.plan(), layer.machine(), device::ExchangeMode::Share,
                       *executor);
  ASSERT_FALSE(table.set_weights(layer.weights));
  Embedding embedding(table, layer.problem(), layer.plan(), layer.machine(),
                      device::ExchangeMode::Share, *executor, {.ids = 8, .rows_per_part = 2});
  Matrix<float> out(8, 16);
  const device::Ledger one = embedding.embedding_slice<float>(Ids(8, 3), out.view());
  const device::Ledger two =
      embedding.embedding_slice<float>(Ids{0, 1, 2, 3, 0, 1, 2, 3}, out.view());
  EXPECT_EQ(two.steps.size(), 2 * one.steps.size()) << "four rows of a part that holds two a run";
}

TEST(Embedding, WorksOnALayerWithTwoLayouts) {
  const Problem problem{.size = {1, 600, 32, 256},
                        .density = 0.1,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 48;
  planner::Options options;
  options.constraints.use_dense = false;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options);
  const auto executor = make_executor(2);
  FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const auto given = weights(600, 32, {1, 1}, 0.1, 3);
  ASSERT_FALSE(layer.set_weights(given));
  Embedding embedding(layer, problem, plan, machine, device::ExchangeMode::Share, *executor);
  Random random(1);
  const Ids ids = random_ids(256, 600, random);
  const auto slices = small_whole_numbers<float>(256, 32, random);
  embedding.embedding_update_add<float>(ids, slices.view(), 1.0f);
  // GradA may run on the other layout, which must have the new values.
  Matrix<float> q_grad = random_matrix<float>(600, 256, 2), s_grad(32, 256);
  layer.grad_a<float>(std::as_const(q_grad).view(), s_grad.view());
  const verify::Verdict verdict = verify::verify_product<float>(
      sparse::transpose(layer.weights()), std::as_const(q_grad).view(),
      std::as_const(s_grad).view(), {DataType::Float, DataType::Float, plan.tiles_used()});
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  EXPECT_NE(layer.weights().values, given.values);
}

// Each group of a layer is a table of its own.
TEST(Embedding, ServesEveryGroupLikeALayerOfThatGroup) {
  const Problem problem{.size = {3, 37, 22, 8}, .density = 0.4, .data_type = DataType::Half};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 36;
  planner::Options options;
  options.constraints.use_dense = false;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options);
  const auto executor = make_executor(2);
  const auto mode = device::ExchangeMode::Isolate;
  std::vector<sparse::Csr<float>> tables;
  for (std::uint64_t g = 0; g < 3; ++g) tables.push_back(weights(37, 22, {1, 1}, 0.3, 20 + g));
  FullyConnected layer(problem, plan, machine, mode, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(tables)));
  Embedding embedding(layer, problem, plan, machine, mode, *executor);
  Random random(2);
  const Ids ids = random_ids(15, 37, random);
  const auto slices = small_whole_numbers<Half>(15, 22, random);
  for (std::int64_t g = 0; g < 3; ++g) {
    verify::Checksums sums;
    device::Ledger ledger;
    Matrix<Half> out(15, 22);
    ASSERT_TRUE(embedding.embedding_slice<Half>(ids, out.view(), {.self_check = &sums}, ledger, g));
    EXPECT_EQ(sums.compared, 15 * 22);
    const Matrix<float> dense = dense_weights<Half>(tables[std::size_t(g)]);
    for (std::int64_t i = 0; i < 15; ++i)
      for (std::int64_t y = 0; y < 22; ++y)
        EXPECT_EQ(float(out(i, y)), dense(ids[std::size_t(i)], y));
    ASSERT_TRUE(embedding.embedding_update_add<Half>(ids, slices.view(), 0.5f,
                                                     {.self_check = &sums}, ledger, g));
    EXPECT_EQ(sums.compared, std::ssize(tables[std::size_t(g)].values));
    for (std::int64_t other = 0; other < 3; ++other)
      EXPECT_EQ(layer.weights(other).values == tables[std::size_t(other)].values, other > g);
  }
  Matrix<Half> out(15, 22);
  EXPECT_THROW(embedding.embedding_slice<Half>(ids, out.view(), 3), Error);
}

// No flipped bit changes a result unseen, and a second run is right.
TEST(Embedding, NoticesFaultsAndRepairsThem) {
  const LayerCase layer{
      .weights = weights(32, 16, {1, 1}, 0.5, 4), .partition = {1, 2, 1, 2}, .force_spills = true};
  const auto executor = make_executor(1);
  const auto mode = device::ExchangeMode::Isolate;
  FullyConnected table(layer.problem(), layer.plan(), layer.machine(), mode, *executor);
  ASSERT_FALSE(table.set_weights(layer.weights, {.force_spills = true}));
  Embedding embedding(table, layer.problem(), layer.plan(), layer.machine(), mode, *executor,
                      {.ids = 8});
  Random random(2);
  const Ids ids = random_ids(12, 32, random);  // two runs
  Matrix<float> wanted(12, 16), out(12, 16);
  const device::Ledger clean = embedding.embedding_slice<float>(ids, wanted.view());
  int repaired = 0;
  const auto run_with_fault = [&](std::int64_t step, std::int64_t bit, const auto& run) {
    verify::Checksums sums;
    TilePass options;
    options.pass.self_check = &sums;
    options.pass.repair = true;
    options.tiles.fault = device::Fault{TileId(1), step, bit};
    device::Ledger ledger;
    ASSERT_TRUE(run(options, ledger));
    if (!sums.first_failure.empty()) ++repaired;
  };
  for (std::int64_t step = 0; step < std::ssize(clean.steps); ++step)
    for (std::int64_t bit = step; bit < 6000; bit += 97) {
      run_with_fault(step, bit, [&](const PassOptions& options, device::Ledger& ledger) {
        return embedding.embedding_slice<float>(ids, out.view(), options, ledger);
      });
      EXPECT_EQ(as_float(out), as_float(wanted)) << step << " " << bit;
    }
  EXPECT_GT(repaired, 5);
  repaired = 0;
  const std::vector<float> before = table.weights().values;
  const Matrix<float> nothing(12, 16);
  for (std::int64_t step = 0; step < 6; ++step)
    for (std::int64_t bit = step; bit < 6000; bit += 97) {
      run_with_fault(step, bit, [&](const PassOptions& options, device::Ledger& ledger) {
        return embedding.embedding_update_add<float>(ids, nothing.view(), 1.0f, options, ledger);
      });
      EXPECT_EQ(table.weights().values, before) << step << " " << bit;
    }
  EXPECT_GT(repaired, 5);
}

TEST(Embedding, RefusesWrongCallsAndChangesNothing) {
  const LayerCase layer{.weights = weights(32, 16, {1, 1}, 0.5, 4), .partition = {1, 2, 1, 1}};
  const auto executor = make_executor(1);
  const auto share = device::ExchangeMode::Share;
  FullyConnected table(layer.problem(), layer.plan(), layer.machine(), share, *executor);
  Embedding embedding(table, layer.problem(), layer.plan(), layer.machine(), share, *executor);
  Matrix<float> out(2, 16);
  EXPECT_THROW(embedding.embedding_slice<float>(Ids{1, 2}, out.view()), Error) << "no weights";
  ASSERT_FALSE(table.set_weights(layer.weights));
  EXPECT_THROW(embedding.embedding_slice<float>(Ids{1, 32}, out.view()), Error);
  EXPECT_THROW(embedding.embedding_slice<float>(Ids{-1, 2}, out.view()), Error);
  EXPECT_THROW(embedding.embedding_slice<float>(Ids{1}, out.view()), Error);
  Matrix<Half> halves(2, 16);
  EXPECT_THROW(embedding.embedding_slice<Half>(Ids{1, 2}, halves.view()), Error);
  EXPECT_THROW(
      embedding.embedding_update_add<float>(Ids{1, 2}, std::as_const(out).view(), INFINITY), Error);
  std::stop_source stop;
  stop.request_stop();
  device::Ledger ledger;
  out.elements()[0] = 1;
  EXPECT_FALSE(embedding.embedding_update_add<float>(Ids{1, 2}, std::as_const(out).view(), 1.0f,
                                                     {.stop = stop.get_token()}, ledger));
  EXPECT_EQ(table.weights().values, layer.weights.values);
  EXPECT_THROW(Embedding(table, layer.problem(), layer.plan(), layer.machine(), share, *executor,
                         {.ids = -1}),
               Error);
  LayerCase dense = layer;
  dense.dense = true;
  EXPECT_NO_THROW(static_cast<void>(dense.plan()));
}

// The whole vocabulary of a translation model, and a batch of 1,024 words. One-hot passes are those
// of the plan of the tied layer.
TEST(Embedding, CostsATenthOfOneHotPasses) {
  const Problem problem{.size = {1, 33288, 512, 1024},
                        .density = 0.02,
                        .data_type = DataType::Half,
                        .grad_a = true,
                        .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");
  planner::Options options;
  options.constraints.use_dense = false;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options);
  const auto executor = make_executor(2);
  FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const auto table = weights(33288, 512, {1, 1}, 0.02, 7);
  ASSERT_FALSE(layer.set_weights(table));
  Embedding embedding(layer, problem, plan, machine, device::ExchangeMode::Share, *executor);
  Random random(11);
  const Ids ids = random_ids(1024, 33288, random);
  Matrix<Half> out(1024, 512);
  const Cycles slice = embedding.embedding_slice<Half>(ids, out.view()).total();
  const Cycles update =
      embedding.embedding_update_add<Half>(ids, std::as_const(out).view(), 1.0f).total();
  EXPECT_LE(slice * 10, plan.cost.find(Pass::GradA)->cycles());
  EXPECT_LE(update * 10, plan.cost.find(Pass::GradW)->cycles());
  RecordProperty("slice_cycles", std::to_string(slice.value));
  RecordProperty("update_cycles", std::to_string(update.value));
}

}  // namespace
}  // namespace tessera::runtime
