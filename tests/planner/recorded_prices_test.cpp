// Compares plans, their prices and their explanations with a table, whole: every term, byte and
// sentence. What is cheap enough to be chosen is tested elsewhere; a price that changes without
// changing a choice is seen here. When prices or texts are meant to change, the table is written
// again with
//   TESSERA_RECORD=new.tsv build/release/tests/planner/recorded_prices_tests
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/planner/dense_grad_w.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/planner/internal/priced_layer.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_bounds.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/planner/sparse_below.hpp"
#include "tessera/planner/static_explain.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/tests/planner/drawn_stats.hpp"
#include "tessera/tests/planner/product_plan.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/runtime/random_network.hpp"
#include "tessera/tests/support/recorded.hpp"

namespace tessera::planner {
namespace {

constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {8, 8}, {1, 1}, {16, 16}, {2, 3}};
constexpr DataType kTypes[] = {DataType::Float, DataType::Half, DataType::BFloat16};

// `cycles` makes the table legible; the digest is that of all of the text.
class Prices {
 public:
  explicit Prices(const std::string& kind) : table_("recorded_prices.tsv", kind) {}

  void expect(int number, Cycles cycles, const std::string& text) {
    test::Digest digest;
    digest.add(text);
    table_.expect(number, std::to_string(cycles.value) + '\t' + digest.text(), text);
  }

 private:
  test::RecordedTable table_;
};

device::Machine draw_machine(Random& random, std::int64_t groups) {
  constexpr const char* kPresets[] = {"gc200", "bow", "mk1", "gc200"};
  constexpr std::int64_t kTiles[] = {1, 2, 3, 7, 16, 61, 184, 1216};
  device::Machine machine = device::machine_preset(kPresets[random.below(4)]);
  machine.tiles = std::max(kTiles[random.below(8)], groups);
  return machine;
}

Problem draw_problem(Random& random) {
  const BlockShape block = kBlocks[random.below(6)];
  const std::int64_t most = std::int64_t(1) << random.below(7);
  Problem p{.size = {1 + random.below(3) / 2, block.rows * (1 + random.below(most)),
                     block.cols * (1 + random.below(most)), 1 + random.below(300)},
            .block = block,
            .density = 0.02 + 0.5 * random.unit(),
            .data_type = kTypes[random.below(3)],
            .grad_a = random.below(3) != 0,
            .grad_w = random.below(3) != 0};
  p.partials_type =
      p.data_type == DataType::Half && random.below(2) == 0 ? DataType::Half : DataType::Float;
  return p;
}

Options draw_options(Random& random) {
  Options options = random.below(2) == 0 ? sparse_options() : Options{};
  options.per_pass_plans = random.below(2) == 0;
  options.partitioner_force_bucket_spills = random.below(6) == 0;
  options.pattern_count = random.below(4) == 0 ? 20 : 1;
  if (random.below(3) == 0) options.operand_placement = Placement::AtHome;
  if (random.below(5) == 0) options.constraints.grad_w_exchange_buckets = random.below(2) == 0;
  if (random.below(6) == 0) options.constraints.use_dense = random.below(2) == 0;
  if (random.below(4) == 0) options.available_memory_proportion = 0.1 + 0.9 * random.unit();
  return options;
}

struct Request {
  Problem problem;
  device::Machine machine;
  Options options;
};

Request draw_request(Random& random) {
  Request request{.problem = draw_problem(random), .machine = {}, .options = {}};
  request.machine = draw_machine(random, request.problem.size.g);
  request.options = draw_options(random);
  return request;
}

TEST(RecordedPrices, OfLayersAreAsRecorded) {
  Prices prices("layer");
  Random random(201);
  for (int number = 0; number < 400; ++number) {
    const auto [p, machine, options] = draw_request(random);
    std::optional<PatternStats> stats;
    if (number % 2 == 0) stats = draw_stats(p, random);
    const PatternStats* const known = stats ? &*stats : nullptr;
    const PlanResult result = plan(p, machine, options, known);
    if (!result.has_plan) {
      prices.expect(number, Cycles(-1),
                    result.reason + '\n' + to_text(explain_no_fit(p, machine, options, known)));
      continue;
    }
    std::string text = plan_to_json({p, machine, options, result.plan}) +
                       std::to_string(result.evaluations) + ' ' +
                       std::to_string(result.memory_bound.value);
    if (number % 4 < 2)
      text += to_text(explain(p, machine, options, known, result.plan)) +
              to_json(explain(p, machine, options, known, result.plan));
    prices.expect(number, result.plan.cost.cycles, text);
  }
}

TEST(RecordedPrices, OfLayersThatDoNotFitAreAsRecorded) {
  Prices prices("no fit");
  Random random(202);
  for (int number = 0; number < 80; ++number) {
    const Problem p = draw_problem(random);
    device::Machine machine = draw_machine(random, p.size.g);
    machine.tile_memory = Bytes(1024 + random.below(12000));
    const Options options = draw_options(random);
    const BestEffort best = plan_best_effort(p, machine, options);
    std::string text;
    if (!plan(p, machine, options).has_plan) text = to_text(explain_no_fit(p, machine, options));
    if (best.result.has_plan)
      text += plan_to_json({best.problem, machine, best.options, best.result.plan});
    prices.expect(number, best.result.has_plan ? best.result.plan.cost.cycles : Cycles(-1), text);
  }
}

std::string text_of(const Home& home) {
  std::ostringstream out;
  out << home.rows << ' ' << home.cols << ' ' << home.most_elements() << ' ' << home.most_rows()
      << ' ' << home.sum_of_rows();
  for (const HomePiece& piece : home.pieces)
    out << ' ' << piece.elements.begin << '-' << piece.elements.end;
  return out.str() + '\n';
}

TEST(RecordedPrices, OfDenseLayersAreAsRecorded) {
  Prices prices("dense");
  Random random(203);
  for (int number = 0; number < 160; ++number) {
    const Problem p = draw_problem(random);
    device::Machine machine = draw_machine(random, p.size.g);
    if (number % 4 == 3) machine.tile_memory = Bytes(40000 + random.below(40000));
    DenseOptions options;
    if (number % 3 == 0) options.available_memory_proportion = 0.1 + 0.9 * random.unit();
    const DensePlanResult result = plan_dense(p, machine, options);
    if (!result.plan) {
      prices.expect(number, Cycles(-1), result.reason);
      continue;
    }
    const DensePlan& plan = *result.plan;
    std::string text = to_string(plan) + std::to_string(plan.cost.resident.value) + ' ' +
                       std::to_string(result.evaluations);
    for (const DensePassPlan& pass : plan.passes) {
      text += std::to_string(int(pass.weights)) + std::to_string(int(pass.neighbours)) +
              std::to_string(pass.cost.temp().value);
      if (pass.rounds.product() != 1) continue;
      const DenseHomes homes(pass);
      text += text_of(homes.slices(Side::Left)) + text_of(homes.slices(Side::Right)) +
              text_of(homes.shares(Side::Left)) + text_of(homes.shares(Side::Right)) +
              text_of(homes.result());
    }
    prices.expect(number, plan.cost.cycles, text);
  }
}

TEST(RecordedPrices, OfSearchesForLargestGradientsAreAsRecorded) {
  Prices prices("search");
  Random random(204);
  for (int number = 0; number < 40; ++number) {
    Problem p = draw_problem(random);
    p.size.g = 1;
    p.grad_w = true;
    const device::Machine machine = draw_machine(random, p.size.g);
    const Dims padded = p.size_in_blocks();
    const std::int64_t most = padded.x * padded.y / p.block.area();
    const DenseGradWResult result =
        plan_dense_grad_w(p, machine, {.places = 1 + random.below(most), .spare = 1 + number % 5});
    std::string text = result.reason;
    if (result.plan)
      text = to_string(result.plan->dense) + std::to_string(result.plan->keep) + ' ' +
             std::to_string(result.plan->round_grain.rows) + ' ' +
             std::to_string(result.plan->round_grain.columns);
    prices.expect(number, result.plan ? result.plan->dense.cost.cycles : Cycles(-1), text);
  }
}

TEST(RecordedPrices, OfStaticLayersAreAsRecorded) {
  Prices prices("static");
  constexpr std::int64_t kBlockSides[] = {1, 4, 8, 16};
  Random random(205);
  for (int number = 0; number < 160; ++number) {
    const double density = 0.03 + 0.5 * random.unit();
    const std::int64_t block = kBlockSides[random.below(4)];
    const std::int64_t cols = 1 + random.below(40), rows = 1 + random.below(40);
    const auto m = random_matrix(random, rows, cols, block, density);
    Problem p = problem_of(m, 1 + random.below(80));
    p.data_type = number % 3 == 0 ? DataType::Float : DataType::Half;
    p.grad_a = number % 2 == 0;
    p.grad_w = number % 4 < 2;
    const device::Machine machine = small_machine(1 + random.below(number % 2 == 0 ? 20 : 200));
    StaticOptions options;
    if (number % 5 == 4) options.z_parts = 1 + random.below(3);
    if (number % 7 == 6) options.bands = 1 + random.below(3);
    const StaticPlanResult result = plan_static(p, view_of(m), machine, options);
    if (!result.plan) {
      prices.expect(number, Cycles(-1), result.reason);
      continue;
    }
    const StaticExplanation explanation = explain_static(p, view_of(m), machine, options);
    std::string text = to_json(*result.plan) + to_text(explanation, result) +
                       to_json(explanation, result) +
                       std::to_string(static_floor(p, machine, m.blocks()).value) + ' ' +
                       std::to_string(result.evaluations);
    StaticPlanner planner(view_of(m));
    if (const StaticCostResult quick = planner.quick_cost(p, machine, options); quick.cost)
      text += ' ' + std::to_string(quick.cost->cycles.value) + ' ' + std::to_string(quick.tiles);
    prices.expect(number, result.plan->cost.cycles, text);
  }
}

TEST(RecordedPrices, OfNetworksAreAsRecorded) {
  Prices prices("network");
  Random random(206);
  for (int number = 0; number < 120; ++number) {
    runtime::RandomNetwork drawn = runtime::draw_network(random, number);
    if (number % 3 == 2) drawn.spec.data_type = DataType::Half;
    if (number % 7 == 6) {
      drawn.spec.loss.reset();
      drawn.spec.layers.front().recompute = false;
    }
    const NetworkPlan plan = plan_network(drawn.spec, drawn.machine);
    std::ostringstream text;
    text << to_string(plan) << plan.memory.value << ' ' << plan.layer_by_layer.value << ' '
         << plan.cheapest_of_each.value << ' ' << plan.candidates << '\n';
    for (const WorkCost& work : plan.work)
      text << to_string(work.work) << ' ' << work.layer << ' ' << work.cycles.value << '\n';
    for (std::size_t l = 0; l < plan.plans.size(); ++l) {
      const PricedLayer layer(drawn.spec, std::int64_t(l), plan.plans[l], drawn.machine);
      text << layer.resident().value << ' ' << layer.temp().value << ' '
           << layer.temp_of_next().value;
      for (const auto& list : {layer.own_work(), layer.apart_work(), layer.spread_work()})
        for (const WorkCost& work : list)
          text << ' ' << to_string(work.work) << ' ' << work.cycles.value;
      text << '\n';
    }
    prices.expect(number, plan.cycles, text.str());
  }
}

TEST(RecordedPrices, OfProductsAreAsRecorded) {
  Prices prices("product");
  Random random(207);
  for (int number = 0; number < 60; ++number) {
    const BlockShape block = kBlocks[random.below(5)];
    const MatMulProblem p{.groups = 1 + number % 2,
                          .m = block.rows * (1 + random.below(30)),
                          .k = block.rows * (1 + random.below(30)),
                          .n = block.rows * (1 + random.below(30)),
                          .side = number % 4 < 2 ? SparseSide::Left : SparseSide::Right,
                          .block = block,
                          .density = 0.05 + 0.5 * random.unit(),
                          .data_type = kTypes[random.below(3)],
                          .transpose_lhs = random.below(2) == 0,
                          .transpose_rhs = random.below(2) == 0};
    random.below(2);  // not used: the table was drawn with one choice more
    const device::Machine machine = draw_machine(random, p.groups);
    std::optional<MatMulPlan> product;
    try {
      product = test::product_plan(p, machine);
    } catch (const Error& error) {
      prices.expect(number, Cycles(-1), to_string(p) + ": " + error.what());
      continue;
    }
    std::string text = plan_to_json({layer_of(p), machine, {}, product->layer});
    Cycles cycles = product->layer.cost.cycles;
    if (const auto& move = product->move) {
      cycles += move->cycles();
      for (const std::int64_t figure :
           {move->row_parts, move->col_parts, move->senders, move->arrange.value,
            move->exchange.value, move->transpose.value, move->waiting.value, move->temp.value})
        text += ' ' + std::to_string(figure);
    }
    prices.expect(number, cycles, text);
  }
}

TEST(RecordedPrices, OfBoundsAreAsRecorded) {
  Prices prices("floor");
  Random random(208);
  for (int number = 0; number < 120; ++number) {
    const auto [p, machine, options] = draw_request(random);
    const PlanFloor floor = plan_floor(p, machine, options, 1 + random.below(400));
    std::ostringstream text;
    text << floor.possible << floor.with_buckets;
    const PlanResult whole = plan(p, machine, options);
    if (whole.has_plan) {
      const Cycles cycles = whole.plan.cost.cycles;
      text << ' ' << plan_below(p, machine, cycles, options).has_plan
           << plan_below(p, machine, cycles + Cycles(1), options).has_plan
           << sparse_plan_below(cycles + Cycles(1), p, machine, options).has_value() << ' '
           << highest_step_like(whole.plan, cycles, p, machine, options);
    }
    prices.expect(number, floor.cycles, text.str());
  }
}

TEST(RecordedPrices, HaveATestForEachKind) {
  test::expect_kinds("recorded_prices.tsv", {"layer", "no fit", "dense", "search", "static",
                                             "network", "product", "floor"});
}

}  // namespace
}  // namespace tessera::planner
