// Compares runs on modelled machines with a table: every step of their ledgers, and the bits of
// their results. A change of how programs are built must keep them. After a change of costs or
// results, the table is written again with
//   TESSERA_RECORD=new.tsv build/release/tests/runtime/recorded_runs_tests
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/block_attention.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/runtime/embedding.hpp"
#include "tessera/runtime/matmul.hpp"
#include "tessera/sparse/block_mask.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/tests/planner/product_plan.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"
#include "tessera/tests/runtime/group_case.hpp"
#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/runtime/network_twin.hpp"
#include "tessera/tests/runtime/random_network.hpp"
#include "tessera/tests/runtime/static_case.hpp"
#include "tessera/tests/support/recorded.hpp"

namespace tessera::runtime {
namespace {

using device::ExchangeMode;

// One run: its cycles, and digests of its ledgers with the memory of the fullest tile, and of its
// results.
struct Record {
  std::int64_t cycles = 0;
  test::Digest steps, results;

  void add(const device::Ledger& ledger) {
    cycles += ledger.total().value;
    for (const device::StepRecord& step : ledger.steps)
      for (const std::int64_t figure : std::initializer_list<std::int64_t>{
               std::int64_t(step.phase), std::int64_t(step.kind), step.cycles.value,
               step.overhead.value, step.critical_tile.value, step.tile_sum.value, step.moved.value,
               step.tiles})
        steps.add(figure);
  }
  template <class T>
  void add(std::span<const T> numbers) {
    results.add(numbers.data(), numbers.size_bytes());
  }
  template <class T>
  void add(const Matrix<T>& matrix) {
    add(std::span<const T>(matrix.elements()));
  }
  std::string text() const {
    return std::to_string(cycles) + '\t' + steps.text() + '\t' + results.text();
  }
};

class Runs {
 public:
  explicit Runs(const std::string& kind) : table_("recorded_runs.tsv", kind) {}

  void expect(std::int64_t number, const Record& run) { table_.expect(number, run.text()); }
  void expect_none(std::int64_t number) const { table_.expect_none(number); }

 private:
  test::RecordedTable table_;
};

template <class T>
Record run_layer(FullyConnected& layer, Dims size) {
  const auto s = random_matrix<T>(size.g * size.y, size.z, 1);
  const auto q_grad = random_matrix<T>(size.g * size.x, size.z, 2);
  Matrix<T> q(size.g * size.x, size.z), s_grad(size.g * size.y, size.z);
  std::vector<float> gradient(std::size_t(layer.values()));
  Record run;
  run.add(layer.forward<T>(s.view(), q.view()));
  run.add(layer.grad_a<T>(q_grad.view(), s_grad.view()));
  run.add(layer.grad_w<T>(q_grad.view(), s.view(), gradient));
  run.steps.add(layer.high_water().value);
  run.add(q);
  run.add(s_grad);
  run.add(std::span<const float>(gradient));
  return run;
}

// Draws weights in the padded size of a problem.
sparse::Csr<float> weights_of(const Problem& p, std::uint64_t seed) {
  const Dims padded = p.size_in_blocks();
  return random_weights(padded.x, padded.y, p.block, p.density, seed);
}

void expect_layer(Runs& runs, int number, const Problem& p, const device::Machine& machine,
                  const planner::Options& options, ExchangeMode mode, Executor& executor) {
  std::vector<sparse::CheckedCsr<float>> weights;
  for (std::int64_t g = 0; g < p.size.g; ++g)
    weights.push_back(sparse::checked(weights_of(p, std::uint64_t(number + 1000 * g))));
  const PatternStats stats = sparse::stats_of_groups(weights);
  const auto planned = planner::plan(p, machine, options, &stats);
  if (!planned.has_plan) return runs.expect_none(number);
  FullyConnected layer(p, planned.plan, machine, mode, executor);
  if (layer.set_weights(std::span<const sparse::CheckedCsr<float>>(weights)))
    return runs.expect_none(number);
  with_type(p.data_type, [&]<class T>(T) { runs.expect(number, run_layer<T>(layer, p.size)); });
}

TEST(RecordedRuns, OfTheRecordedPlansProblemsAreAsRecorded) {
  Runs runs("plan");
  const auto executor = make_executor(2);
  int number = 0;
  for (const planner::RecordedPlan& row : planner::read_recorded_plans()) {
    Problem p = row.problem();
    if (++number, p.size.x * p.size.y > 1 << 20 || p.size.x * p.size.y * p.size.z > 1 << 26)
      continue;
    p.grad_a = p.grad_w = true;
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 128;
    planner::Options options = planner::sparse_options();
    options.per_pass_plans = number % 3 == 0;
    expect_layer(runs, number, p, machine, options, ExchangeMode::Share, *executor);
  }
}

TEST(RecordedRuns, OfRandomLayersAreAsRecorded) {
  Runs runs("layer");
  constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {8, 8}, {2, 3}, {16, 16}};
  constexpr DataType kTypes[] = {DataType::Float, DataType::Half, DataType::BFloat16};
  const auto executor = make_executor(2);
  Random random(101);
  for (int number = 0; number < 200; ++number) {
    const BlockShape block = kBlocks[random.below(5)];
    Problem p{.size = {1 + std::int64_t(random.below(4)) / 3,
                       block.rows * std::int64_t(1 + random.below(12)) + random.below(2),
                       block.cols * std::int64_t(1 + random.below(12)),
                       std::int64_t(1 + random.below(48))},
              .block = block,
              .density = 0.02 + 0.4 * random.unit(),
              .data_type = kTypes[random.below(3)],
              .grad_a = true,
              .grad_w = true};
    device::Machine machine = device::machine_preset(random.below(2) == 0 ? "gc200" : "mk1");
    machine.tiles = p.size.g + random.below(40);
    planner::Options options = planner::sparse_options();
    options.per_pass_plans = random.below(2) == 0;
    options.partitioner_force_bucket_spills = random.below(4) == 0;
    if (random.below(3) == 0) options.operand_placement = Placement::AtHome;
    if (random.below(3) == 0) options.constraints.grad_w_exchange_buckets = random.below(2) == 0;
    if (number % 5 == 4) options.constraints.use_dense = true;
    expect_layer(runs, number, p, machine, options,
                 number % 2 == 0 ? ExchangeMode::Isolate : ExchangeMode::Share, *executor);
  }
}

// Plans by hand reach partitions and spills that no planner chooses.
TEST(RecordedRuns, OfLayersCutByHandAreAsRecorded) {
  Runs runs("cut");
  int number = 0;
  for (const DataType type : {DataType::Float, DataType::Half})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
      for (const Dims partition : {Dims{1, 2, 3, 2}, {1, 1, 1, 4}, {1, 3, 2, 1}})
        for (const bool travelling : {false, true})
          for (const bool spills : {false, true}) {
            const LayerCase c{.weights = random_weights(48, 40, block, 0.4, 7),
                              .batch = 8,
                              .type = type,
                              .partition = partition,
                              .travelling_buckets = travelling,
                              .separate_grad_a = spills && block.is_element(),
                              .force_spills = spills};
            Record run;
            const auto results = run_case(
                c, {.mode = number % 2 == 0 ? ExchangeMode::Isolate : ExchangeMode::Share});
            ASSERT_TRUE(results) << c.name();
            for (const device::Ledger& ledger : results->ledgers) run.add(ledger);
            run.add(std::span<const float>(results->q));
            run.add(std::span<const float>(results->s_grad));
            run.add(std::span<const float>(results->gradient));
            runs.expect(number++, run);
          }
}

TEST(RecordedRuns, OfStaticLayersAreAsRecorded) {
  Runs runs("static");
  constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {8, 8}, {16, 16}};
  const auto executor = make_executor(2);
  Random random(102);
  for (int number = 0; number < 60; ++number) {
    const BlockShape block = kBlocks[random.below(4)];
    const std::int64_t z_parts = 1 + random.below(2), tiles = 4 + random.below(30);
    const std::int64_t batch = 1 + random.below(40);
    const double density = 0.05 + 0.4 * random.unit();
    const std::int64_t cols = block.cols * (1 + random.below(20));
    const std::int64_t rows = block.rows * (1 + random.below(20));
    StaticCase c = static_case(random_weights(rows, cols, block, density, std::uint64_t(number)),
                               batch, number % 3 == 0 ? DataType::Half : DataType::Float, tiles,
                               Values::Any, z_parts);
    if (number % 4 == 3) give_grad_a_random_tiles(c, random);
    StaticLayer layer =
        c.layer(*executor, number % 2 == 0 ? ExchangeMode::Isolate : ExchangeMode::Share);
    with_type(c.problem.data_type, [&]<class T>(T) {
      const auto results = run_all<T>(c, layer);
      Record run;
      for (const device::Ledger& ledger : results.ledgers) run.add(ledger);
      run.steps.add(layer.high_water().value);
      run.add(results.q);
      run.add(results.s_grad);
      for (const auto& gradient : results.gradients)
        run.add(std::span<const float>(gradient.values));
      runs.expect(number, run);
    });
  }
}

// Losses with exponentials have bits that depend on the C library, so their numbers are left out.
TEST(RecordedRuns, OfRandomNetworksAreAsRecorded) {
  Runs runs("network");
  const auto executor = make_executor(1);
  Random random(103);
  for (int number = 0; number < 200; ++number) {
    RandomNetwork drawn = draw_network(random, number);
    if (number % 5 == 4) drawn.spec.data_type = DataType::Half;
    drawn.spec.optimiser = optimisers()[std::size_t(number) % optimisers().size()];
    Network network(drawn.spec, planner::plan_network(drawn.spec, drawn.machine).plans,
                    drawn.machine, drawn.mode, *executor);
    Twin twin(drawn.spec);
    twin.give(network);
    Record run;
    for (int step = 0; step < 2; ++step) {
      run.add(network.run(twin.batch()).ledger);
    }
    run.steps.add(network.high_water().value);
    if (drawn.spec.loss == codelets::Loss::MeanSquaredError)
      for (std::int64_t l = 0; l < std::ssize(drawn.spec.layers); ++l) {
        run.add(std::span<const float>(network.weights(l).values));
        run.add(network.bias(l));
      }
    runs.expect(number, run);
  }
}

TEST(RecordedRuns, OfProductsAreAsRecorded) {
  Runs runs("product");
  const auto executor = make_executor(2);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  for (int number = 0; number < 48; ++number) {
    MatMulProblem p{.groups = 1 + number % 2,
                    .m = 24,
                    .k = 40,
                    .n = 16,
                    .side = number % 4 < 2 ? SparseSide::Left : SparseSide::Right,
                    .block = number % 3 == 0 ? BlockShape{4, 4} : BlockShape{1, 1},
                    .density = 0.3,
                    .data_type = number / 16 % 2 == 1 ? DataType::Half : DataType::Float,
                    .transpose_lhs = number / 4 % 2 == 1,
                    .transpose_rhs = number / 8 % 2 == 1};
    MatMul product(test::product_plan(p, machine), machine,
                   number % 5 == 0 ? ExchangeMode::Isolate : ExchangeMode::Share, *executor);
    const MatrixShape stored = sparse_shape(p), in = dense_shape(p), out = result_shape(p);
    std::vector<sparse::Csr<float>> operands;
    for (std::int64_t g = 0; g < p.groups; ++g)
      operands.push_back(
          random_weights(stored.rows, stored.cols, p.block, p.density, std::uint64_t(number + g)));
    ASSERT_FALSE(product.set_sparse(operands));
    with_type(p.data_type, [&]<class T>(T) {
      const auto dense = random_matrix<T>(p.groups * in.rows, in.cols, 3);
      Matrix<T> result(p.groups * out.rows, out.cols);
      Record run;
      run.add(product.multiply<T>(dense.view(), result.view()));
      run.steps.add(product.high_water().value);
      run.add(result);
      runs.expect(number, run);
    });
  }
}

TEST(RecordedRuns, OfAttentionAreAsRecorded) {
  Runs runs("attention");
  const auto executor = make_executor(2);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 20;
  for (int number = 0; number < 12; ++number) {
    const BlockShape block = number % 2 == 0 ? BlockShape{4, 4} : BlockShape{8, 8};
    const std::vector<sparse::Csr<float>> masks = {
        sparse::keep_triangle(sparse::random_mask(32, 32, block, 0.5, std::uint64_t(number)),
                              sparse::Triangle::Lower),
        sparse::random_mask(32, 32, block, 0.4, std::uint64_t(number) + 50)};
    const Problem p{.size = {2, 32, 32, 8 + number},
                    .block = block,
                    .data_type = number % 3 == 0 ? DataType::Half : DataType::Float,
                    .grad_a = true,
                    .grad_w = true};
    BlockAttention attention(p, masks, 0.3f, machine,
                             number % 4 < 2 ? ExchangeMode::Isolate : ExchangeMode::Share,
                             *executor);
    with_type(p.data_type, [&]<class T>(T) {
      const std::int64_t rows = 64, cols = p.size.z;
      const auto q = random_matrix<T>(rows, cols, 1), k = random_matrix<T>(rows, cols, 2),
                 v = random_matrix<T>(rows, cols, 3), o_grad = random_matrix<T>(rows, cols, 4);
      Matrix<T> o(rows, cols), q_grad(rows, cols), k_grad(rows, cols), v_grad(rows, cols);
      Record run;
      for (const AttentionStep& step :
           attention.forward<T>(q.view(), k.view(), v.view(), o.view()).steps)
        run.add(step.ledger);
      for (const AttentionStep& step : attention
                                           .backward<T>(q.view(), k.view(), v.view(), o_grad.view(),
                                                        q_grad.view(), k_grad.view(), v_grad.view())
                                           .steps)
        run.add(step.ledger);
      run.steps.add(attention.high_water().value);
      for (const Matrix<T>* result : {&o, &q_grad, &k_grad, &v_grad}) run.add(*result);
      runs.expect(number, run);
    });
  }
}

TEST(RecordedRuns, OfEmbeddingsAreAsRecorded) {
  Runs runs("embedding");
  const auto executor = make_executor(2);
  int number = 0;
  for (const Dims partition : {Dims{1, 1, 1, 2}, {1, 2, 3, 2}, {1, 5, 2, 2}})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
      for (const bool spills : {false, true}) {
        const LayerCase c{.weights = random_weights(60, 40, block, 0.3, 9),
                          .batch = 8,
                          .partition = partition,
                          .force_spills = spills};
        const ExchangeMode mode = number % 2 == 0 ? ExchangeMode::Isolate : ExchangeMode::Share;
        FullyConnected layer(c.problem(), c.plan(), c.machine(), mode, *executor);
        ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = spills}));
        Embedding embedding(layer, c.problem(), c.plan(), c.machine(), mode, *executor, {.ids = 8});
        Random random(5);
        std::vector<std::int64_t> ids;
        for (int i = 0; i < 20; ++i) ids.push_back(std::int64_t(random.below(60)));
        Matrix<float> rows(20, 40);
        Record run;
        run.add(embedding.embedding_slice<float>(ids, rows.view()));
        run.add(rows);
        run.add(embedding.embedding_update_add<float>(ids, std::as_const(rows).view(), 0.5f));
        run.steps.add(embedding.high_water().value);
        run.add(std::span<const float>(layer.weights().values));
        runs.expect(number++, run);
      }
}

TEST(RecordedRuns, OfSearchesForLargestGradientsAreAsRecorded) {
  Runs runs("search");
  const auto executor = make_executor(2);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 12;
  for (int number = 0; number < 12; ++number) {
    const BlockShape block = number % 2 == 0 ? BlockShape{1, 1} : BlockShape{4, 4};
    const Problem p{.size = {1, 40, 48, 4 + number},
                    .block = block,
                    .data_type = number % 3 == 0 ? DataType::Half : DataType::Float};
    DenseGradW search = search_for(
        p, 6, machine, number % 4 < 2 ? ExchangeMode::Isolate : ExchangeMode::Share, *executor);
    const auto taken = sparse::random_pattern(40, 48, block, 0.3, std::uint64_t(number));
    with_type(p.data_type, [&]<class T>(T) {
      const auto q_grad = random_matrix<T>(40, p.size.z, 1), s = random_matrix<T>(48, p.size.z, 2);
      const LargestGradients found = search.largest<T>(
          taken, 6, number % 3 == 1 ? codelets::BlockScore::Max : codelets::BlockScore::Sum,
          q_grad.view(), s.view());
      Record run;
      run.add(found.ledger);
      for (const sparse::BlockAt& at : found.places) {
        run.results.add(at.row);
        run.results.add(at.col);
      }
      runs.expect(number, run);
    });
  }
}

TEST(RecordedRuns, HaveATestForEachKind) {
  test::expect_kinds("recorded_runs.tsv", {"plan", "layer", "cut", "static", "network", "product",
                                           "attention", "embedding", "search"});
}

}  // namespace
}  // namespace tessera::runtime
