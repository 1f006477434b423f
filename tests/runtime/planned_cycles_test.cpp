#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/cost_term.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

// The cycles of a plan against those that the engine counts, phase by phase, over random training
// layers of all types and blocks. The plans know the pattern, as those of the tools do.
namespace tessera::runtime {
namespace {

constexpr std::uint64_t kSeed = 2026;
constexpr int kLayers = 60;

struct Layer {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  planner::Options options;
};

// Draws a training layer. Types and blocks come in turn, so every pair of them occurs.
Layer draw_layer(Random& random, int i) {
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {1, 1}, {8, 8}, {1, 1}, {16, 16}};
  const DataType types[] = {DataType::Half, DataType::Float, DataType::BFloat16};
  Layer layer;
  layer.options = planner::sparse_options();
  layer.problem = {
      .size = {1, 16 * (2 + random.below(38)), 16 * (2 + random.below(38)), 4 + random.below(120)},
      .block = blocks[i % 6],
      .density = 0.02 + 0.2 * random.unit(),
      .data_type = types[i / 6 % 3],
      .grad_a = true,
      .grad_w = true};
  layer.machine.tiles = 4 + random.below(300);
  return layer;
}

// The cycles of one phase of one pass of a layer.
struct PhaseCycles {
  int layer = 0;
  Pass pass = Pass::Fwd;
  Phase phase = Phase::Distribute;
  bool element = false;  // the layer is sparse by elements
  double planned = 0, counted = 0;

  double ratio() const { return planned / counted; }
};

std::map<Phase, double> planned_phases(const planner::Plan& plan, Pass pass) {
  std::map<Phase, double> phases;
  const bool buckets_travel = plan.layout_of(pass).grad_w_exchange_buckets;
  for (const planner::CostTerm& term : plan.cost.find(pass)->terms)
    phases[planner::phase_of(term.name, pass, buckets_travel)] += double(term.cycles.value);
  return phases;
}

std::map<Phase, double> counted_phases(const device::Ledger& ledger) {
  std::map<Phase, double> phases;
  for (const device::PhaseTotal& total : ledger.phases()) {
    phases[total.phase] += double(total.busy().value);
    phases[Phase::Overhead] += double(total.overhead.value);
  }
  return phases;
}

template <class T>
std::map<Pass, device::Ledger> run_passes(FullyConnected& layer, Dims size) {
  const auto s = random_matrix<T>(size.y, size.z, 1);
  const auto q_grad = random_matrix<T>(size.x, size.z, 2);
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  sparse::Csr<float> gradient;
  return {{Pass::Fwd, layer.forward<T>(s.view(), q.view())},
          {Pass::GradA, layer.grad_a<T>(q_grad.view(), s_grad.view())},
          {Pass::GradW, layer.grad_w<T>(q_grad.view(), s.view(), gradient)}};
}

// Plans and runs the layer, appends its phases and returns its plan. Layers that spill are left
// out, because a plan has their mean.
std::optional<planner::Plan> append_layer(const Layer& layer, int number, Executor& executor,
                                          std::vector<PhaseCycles>& all) {
  const Problem& p = layer.problem;
  const auto weights =
      sparse::random_pattern(p.size.x, p.size.y, p.block, p.density, std::uint64_t(number));
  const PatternStats stats = sparse::pattern_stats(weights);
  const planner::Plan plan = planner::plan_or_throw(p, layer.machine, layer.options, &stats);
  FullyConnected connected(p, plan, layer.machine, device::ExchangeMode::Share, executor);
  if (connected.set_weights(weights) || connected.travel().steps() > 0) return std::nullopt;
  with_type(p.data_type, [&]<class T>(T) {
    for (const auto& [pass, ledger] : run_passes<T>(connected, p.size)) {
      std::map<Phase, double> planned = planned_phases(plan, pass);
      std::map<Phase, double> counted = counted_phases(ledger);
      for (const auto& [phase, cycles] : planned) counted[phase] += 0;  // those that did not run
      for (const auto& [phase, cycles] : counted)
        all.push_back({number, pass, phase, p.is_element_wise(), planned[phase], cycles});
    }
  });
  return plan;
}

// Returns the phases of all layers; they are run once for all tests.
const std::vector<PhaseCycles>& all_phases() {
  static const std::vector<PhaseCycles> phases = [] {
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    std::vector<PhaseCycles> all;
    Random random(kSeed);
    for (int i = 0; i < kLayers; ++i) append_layer(draw_layer(random, i), i, *executor, all);
    return all;
  }();
  return phases;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(PlannedCycles, OfWholeLayersAreWithinOnePercentAtTheMedianAndSixAtMost) {
  std::map<int, PhaseCycles> layers;
  for (const PhaseCycles& p : all_phases()) {
    layers[p.layer].planned += p.planned;
    layers[p.layer].counted += p.counted;
  }
  ASSERT_GE(layers.size(), 50u);
  std::vector<double> errors;
  for (const auto& [number, layer] : layers) {
    errors.push_back(std::abs(layer.ratio() - 1));
    EXPECT_LE(errors.back(), 0.06) << "layer " << number << " of seed " << kSeed;
  }
  EXPECT_LE(median(errors), 0.01);
}

// Element kernels divide rows between workers, which the plan knows in the mean only.
bool is_element_kernel(const PhaseCycles& p) {
  return p.element && p.phase == Phase::Distribute && p.pass != Pass::GradW;
}

// Returns the relative errors of phases. Errors below 2 % of the layer's pass count as none,
// because small phases consist of few blocks.
std::vector<double> errors_of(const std::vector<PhaseCycles>& phases) {
  std::map<std::pair<int, Pass>, double> passes;
  for (const PhaseCycles& p : phases) passes[{p.layer, p.pass}] += p.counted;
  std::vector<double> errors;
  for (const PhaseCycles& p : phases) {
    const double error = std::abs(p.planned - p.counted);
    const bool small = error <= 0.02 * passes[{p.layer, p.pass}];
    errors.push_back(small ? 0 : error / p.counted);
  }
  return errors;
}

void expect_within(const std::vector<PhaseCycles>& phases, double most, double most_of_elements) {
  const std::vector<double> errors = errors_of(phases);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const PhaseCycles& p = phases[i];
    EXPECT_LE(errors[i], is_element_kernel(p) ? most_of_elements : most)
        << "layer " << p.layer << ", " << to_string(p.pass) << ", " << to_string(p.phase)
        << ": planned " << p.planned << ", counted " << p.counted;
  }
}

TEST(PlannedCycles, OfEveryPhaseAreWithinTenPercentButForOneInAHundredWithinTwelve) {
  std::vector<PhaseCycles> phases = all_phases();
  expect_within(phases, 0.12, 0.2);
  std::erase_if(phases, is_element_kernel);
  const std::vector<double> errors = errors_of(phases);
  EXPECT_LE(std::ranges::count_if(errors, [](double e) { return e > 0.1; }),
            std::ssize(errors) / 100);
}

// Every small row of the table, trained on 256 tiles. A third of them is asked for in one layout,
// and another third with a batch in parts, so that GradW takes turns.
TEST(PlannedCycles, OfEveryPhaseOfRecordedLayersAreWithinTenPercent) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  std::vector<PhaseCycles> phases;
  int number = 0, with_two_layouts = 0, with_turns = 0;
  for (const planner::RecordedPlan& row : planner::read_recorded_plans()) {
    Layer layer{row.problem()};
    const Dims size = layer.problem.size;
    ++number;
    if (size.x * size.y > 1 << 20 || size.x * size.y * size.z > 1 << 26) continue;
    layer.problem.grad_a = layer.problem.grad_w = true;
    layer.machine.tiles = 256;
    layer.options = planner::sparse_options();
    layer.options.per_pass_plans = number % 3 == 0;
    if (number % 3 == 2 && size.z >= 64) layer.options.constraints.z = 2;
    const auto plan = append_layer(layer, number, *executor, phases);
    if (!plan) continue;
    with_two_layouts += plan->backward.empty() ? 0 : 1;
    with_turns += plan->layout_of(Pass::GradW).partition.z > 1 ? 1 : 0;
  }
  std::set<int> layers;
  for (const PhaseCycles& p : phases) layers.insert(p.layer);
  EXPECT_GE(layers.size(), 60u);
  EXPECT_GE(with_two_layouts, 10);
  EXPECT_GE(with_turns, 20);
  // One element kernel of GradA in a pinned partition is planned 28 % too slow.
  expect_within(phases, 0.1, 0.3);
  std::erase_if(phases, [](const PhaseCycles& p) { return !is_element_kernel(p); });
  const std::vector<double> errors = errors_of(phases);
  EXPECT_LE(std::ranges::count_if(errors, [](double e) { return e > 0.15; }), 1);
}

// A turn of GradW is an exchange and a compute step of one part of z.
TEST(PlannedCycles, OfGradWsTurnsAreBookedWhereTheyRun) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  std::vector<PhaseCycles> phases;
  Random random(kSeed);
  for (int i = 0; i < 24; ++i) {
    Layer layer = draw_layer(random, i);
    layer.options.per_pass_plans = false;
    if (i >= 12) layer.options.operand_placement = Placement::AtHome;
    layer.options.constraints.use_dense.reset();  // a pinned count asks for buckets
    layer.options.constraints.z = 2 + i / 2 % 3;
    layer.options.constraints.grad_w_exchange_buckets = i % 2 == 0;
    append_layer(layer, i, *executor, phases);
  }
  std::erase_if(phases, [](const PhaseCycles& p) { return p.pass != Pass::GradW; });
  for (const Phase turns : {Phase::Distribute, Phase::Propagate})
    EXPECT_GE(std::ranges::count_if(
                  phases, [&](const PhaseCycles& p) { return p.phase == turns && p.counted > 0; }),
              8);
  expect_within(phases, 0.12, 0.12);
}

TEST(PlannedCycles, OfElementKernelsAreWithinTwentyPercentAndFourAtTheMedian) {
  for (const Pass pass : {Pass::Fwd, Pass::GradA}) {
    std::vector<double> ratios;
    for (const PhaseCycles& p : all_phases())
      if (is_element_kernel(p) && p.pass == pass) ratios.push_back(p.ratio());
    ASSERT_GE(ratios.size(), 25u);
    EXPECT_NEAR(median(ratios), 1, 0.04) << to_string(pass);
    EXPECT_GT(*std::ranges::min_element(ratios), 0.8) << to_string(pass);
    EXPECT_LT(*std::ranges::max_element(ratios), 1.2) << to_string(pass);
  }
}

}  // namespace
}  // namespace tessera::runtime
