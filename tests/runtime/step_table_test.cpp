#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tessera/base/pass_steps.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

// Plans, programs and ledgers against the one table of steps, on random layers that are trained.
namespace tessera::runtime {
namespace {

constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

struct Layer {
  Problem problem;
  device::Machine machine;
  sparse::Csr<float> weights;
  planner::Plan plan;
};

// Partitions are pinned now and then: the cheapest ones are alike.
planner::Options random_options(Random& random) {
  planner::Options options = planner::sparse_options();
  options.per_pass_plans = false;
  options.bucket_confidence = 0.9999;
  options.operand_placement = std::array{Placement::EvenSpread, Placement::AsLeft,
                                         Placement::AtHome}[std::size_t(random.below(3))];
  if (random.below(2) == 0) return options;
  options.constraints.x = 1 + random.below(2);
  options.constraints.y = 1 + random.below(2);
  options.constraints.z = std::int64_t{1} << random.below(3);
  options.constraints.grad_w_exchange_buckets = random.below(2) == 0;
  return options;
}

std::optional<Layer> random_layer(std::uint64_t seed) {
  Random random(seed);
  const std::int64_t side = std::array{1, 4, 8, 16}[std::size_t(random.below(4))];
  const DataType type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  Layer layer;
  layer.weights = random_weights(32 * (1 + random.below(3)), 32 * (1 + random.below(3)),
                                 {side, side}, 0.1 + 0.4 * random.unit(), seed);
  layer.problem = {.size = {1, layer.weights.rows, layer.weights.cols, 16 * (1 + random.below(3))},
                   .block = {side, side},
                   .density = 0.3,
                   .data_type = type,
                   .grad_a = true,
                   .grad_w = true};
  layer.machine = device::machine_preset("gc200");
  layer.machine.tiles = 16 + random.below(16);
  const PatternStats stats = sparse::pattern_stats(layer.weights);
  const planner::PlanResult result =
      planner::plan(layer.problem, layer.machine, random_options(random), &stats);
  if (!result.has_plan) return std::nullopt;
  layer.plan = result.plan;
  return layer;
}

PassForm form_of(const Layer& layer, Pass pass) {
  const planner::Plan& plan = layer.plan;
  PassForm form{.pass = pass, .parts = plan.partition};
  if (pass == Pass::GradA) std::swap(form.parts.x, form.parts.y);
  form.transposes = pass == Pass::GradA && plan.block.rows > 1 && plan.block.cols > 1;
  form.arranges_operands = spreads_operands(plan.operand_placement, pass);
  form.arranges_result = spreads_result(plan.operand_placement, pass);
  form.fetches = form.arranges_operands || form.parts.x > 1 ||
                 (pass == Pass::GradW ? form.parts.y : form.parts.z) > 1;
  form.rearranges = pass == Pass::GradW && plan.grad_w == planner::Method::BlockGradWAmp;
  form.buckets_travel = pass == Pass::GradW && plan.grad_w_exchange_buckets;
  form.casts = layer.problem.partials_type != layer.problem.data_type;
  return form;
}

std::string text_of(const Layer& layer) {
  return to_string(layer.problem) + "\n" + to_string(layer.plan);
}

// The number of runs of a step of the table when nothing spills, and of its waits.
struct Runs {
  std::int64_t steps = 0, waits = 0;
  friend bool operator==(const Runs&, const Runs&) = default;
};
using RunsOf = std::map<std::pair<Phase, StepKind>, Runs>;

RunsOf runs_of(const PassForm& form) {
  RunsOf runs;
  for_each_step(form, [&](const PassStep& step) {
    if (step.times == 0) return;
    Runs& of_step = runs[{step.phase, step.kind}];
    of_step.steps += step.times;
    of_step.waits += step.moves ? step.times : 0;
  });
  return runs;
}

RunsOf runs_of(const device::Ledger& ledger) {
  RunsOf runs;
  for (const device::StepRecord& step : ledger.steps) {
    Runs& of_step = runs[{step.phase, step.kind}];
    ++of_step.steps;
    of_step.waits += step.overhead > Cycles();
  }
  return runs;
}

template <class T>
std::vector<device::Ledger> run_all(const Layer& given, FullyConnected& layer) {
  const Dims size = given.problem.size;
  const Matrix<T> s_matrix = random_matrix<T>(size.y, size.z, 1);
  const Matrix<T> q_matrix = random_matrix<T>(size.x, size.z, 2);
  const MatrixView<const T> s = s_matrix.view(), q_grad = q_matrix.view();
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  std::vector<float> gradient(std::size_t(layer.values()));
  return {layer.forward<T>(s, q.view()), layer.grad_a<T>(q_grad, s_grad.view()),
          layer.grad_w<T>(q_grad, s, gradient)};
}

Cycles overhead_of(const device::Ledger& ledger) {
  Cycles sum;
  for (const device::StepRecord& step : ledger.steps) sum += step.overhead;
  return sum;
}

Cycles planned_overhead(const Layer& layer, Pass pass) {
  const auto& terms = layer.plan.cost.find(pass)->terms;
  const auto it =
      std::ranges::find(terms, planner::Term::BarriersAndLaunches, &planner::CostTerm::name);
  return it == terms.end() ? Cycles() : it->cycles;
}

constexpr std::uint64_t kLayers = 150;

TEST(StepTable, IsWhatProgramsAreBuiltOf) {
  const auto executor = make_executor(1);
  int travelling = 0, layers = 0;
  for (std::uint64_t seed = 1; seed <= kLayers; ++seed) {
    const std::optional<Layer> given = random_layer(seed);
    if (!given) continue;
    SCOPED_TRACE(text_of(*given));
    const FullyConnected layer(given->problem, given->plan, given->machine,
                               device::ExchangeMode::Share, *executor);
    for (const Pass pass : kPasses)
      EXPECT_EQ(step_order(layer.program(pass)), step_order(form_of(*given, pass)));
    travelling += given->plan.grad_w_exchange_buckets;
    ++layers;
  }
  EXPECT_GT(travelling, 10);
  EXPECT_GT(layers - travelling, 10);
}

TEST(StepTable, CountsTheBarriersAndLaunchesOfPlans) {
  for (std::uint64_t seed = 1; seed <= kLayers; ++seed) {
    const std::optional<Layer> given = random_layer(seed);
    if (!given) continue;
    SCOPED_TRACE(text_of(*given));
    for (const Pass pass : kPasses) {
      const StepCounts counts = counts_of(form_of(*given, pass));
      const device::Machine& machine = given->machine;
      EXPECT_EQ(planned_overhead(*given, pass),
                (counts.barriers + counts.questions) * machine.sync +
                    (counts.launches + counts.questions) * machine.launch);
    }
  }
}

TEST(StepTable, IsWhatRunsWhereNothingSpills) {
  const auto executor = make_executor(1);
  int compared = 0, circles = 0, rounds = 0;
  for (std::uint64_t seed = 1; seed <= kLayers; ++seed) {
    const std::optional<Layer> given = random_layer(seed);
    if (!given) continue;
    SCOPED_TRACE(text_of(*given));
    FullyConnected layer(given->problem, given->plan, given->machine, device::ExchangeMode::Share,
                         *executor);
    if (layer.set_weights(given->weights) || !layer.travel().stays_home()) continue;
    const auto ledgers = given->problem.data_type == DataType::Half ? run_all<Half>(*given, layer)
                                                                    : run_all<float>(*given, layer);
    for (const Pass pass : kPasses) {
      const device::Ledger& ledger = ledgers[std::size_t(pass)];
      EXPECT_EQ(runs_of(ledger), runs_of(form_of(*given, pass))) << to_string(pass);
      EXPECT_EQ(overhead_of(ledger), planned_overhead(*given, pass)) << to_string(pass);
    }
    ++compared;
    const bool cut = given->plan.partition.z > 1;
    circles += cut && given->plan.grad_w_exchange_buckets;
    rounds += cut && !given->plan.grad_w_exchange_buckets;
  }
  EXPECT_GT(compared, 40);
  EXPECT_GT(circles, 3);
  EXPECT_GT(rounds, 3);
}

}  // namespace
}  // namespace tessera::runtime
