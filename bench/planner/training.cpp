#include "tessera/bench/planner/training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/random.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/planner/enumeration.hpp"

namespace tessera::bench {
namespace {

constexpr std::size_t kNearby = 8;         // partitions with one layout
constexpr std::size_t kNearbyLayouts = 4;  // of either layout of two

// Blocks and types come in turn, so every pair of them occurs.
Layer drawn_layer(Random& random, int i, std::uint64_t seed) {
  constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {1, 1}, {8, 8}, {1, 1}, {16, 16}};
  constexpr std::int64_t kTiles[] = {368, 736, 1472};
  Layer layer{.name = fmt::format("t{:02}", i),
              .problem = {.size = {1, 16 * (8 + random.below(89)), 16 * (8 + random.below(89)),
                                   8 * (1 + random.below(64))},
                          .block = kBlocks[i % 6],
                          .density = 0.01 + 0.2 * random.unit() * random.unit(),
                          .data_type = i / 6 % 2 == 0 ? DataType::Half : DataType::Float,
                          .grad_a = true,
                          .grad_w = true},
              .machine = device::machine_preset("gc200"),
              .weights = {}};
  layer.machine.tiles = kTiles[random.below(3)];
  const Problem& p = layer.problem;
  layer.weights =
      sparse::random_pattern(p.size.x, p.size.y, p.block, p.density, seed + std::uint64_t(i));
  return layer;
}

void note_if_best(const Run& run, TrainingLayer& result) {
  const std::optional<Cycles> cycles = run.simulated();
  if (!cycles || (result.best_nearby && *result.best_nearby <= *cycles)) return;
  result.best_nearby = cycles;
  result.best_partition = run.report->plan.partition;
  result.best_has_two_layouts = !run.report->plan.backward.empty();
}

TrainingLayer run_layer(const Layer& layer, Executor& executor) {
  const PatternStats stats = sparse::pattern_stats(layer.weights);
  planner::Options options = planner::sparse_options();
  TrainingLayer result{.name = layer.name,
                       .problem = layer.problem,
                       .chosen = simulate(layer, options, &stats, executor),
                       .best_nearby = {},
                       .best_partition = {}};
  note_if_best(result.chosen, result);
  for (const planner::Plan& plan :
       planner::cheapest_two_layouts(layer.problem, layer.machine, options, kNearbyLayouts, &stats,
                                     planner::LayoutPairs::WithTheCheapest))
    note_if_best(simulate_plan(layer, plan, executor), result);
  const std::vector<planner::PlanConstraints> nearby =
      planner::cheapest_partitions(layer.problem, layer.machine, options, kNearby, &stats);
  options.per_pass_plans = false;
  note_if_best(simulate(layer, options, &stats, executor), result);
  for (const planner::PlanConstraints& pins : nearby) {
    options.constraints = pins;
    note_if_best(simulate(layer, options, &stats, executor), result);
  }
  return result;
}

std::string partition_text(const Dims& parts, bool has_two_layouts) {
  return fmt::format("{}*{}*{}{}", parts.x, parts.y, parts.z, has_two_layouts ? " 2" : "");
}

std::string row_of(const TrainingLayer& layer) {
  const Problem& p = layer.problem;
  const std::string row =
      fmt::format("{:<5}{:<32}", layer.name,
                  fmt::format("{}x{}x{} b{} {:.3f} {}", p.size.x, p.size.y, p.size.z, p.block.rows,
                              p.density, to_string(p.data_type)));
  if (!layer.ratio()) return row + layer.chosen.failure + "\n";
  const planner::Plan& plan = layer.chosen.report->plan;
  return row + fmt::format("{:>14}{:>10}{:>10}{:>14}{:>10}{:>8.3f}\n",
                           partition_text(plan.partition, !plan.backward.empty()),
                           layer.chosen.planned()->value, layer.chosen.simulated()->value,
                           partition_text(layer.best_partition, layer.best_has_two_layouts),
                           layer.best_nearby->value, *layer.ratio());
}

}  // namespace

std::optional<double> TrainingLayer::ratio() const {
  if (!chosen.report) return std::nullopt;
  return double(chosen.simulated()->value) / double(best_nearby->value);
}

std::vector<TrainingLayer> run_training_layers(std::uint64_t seed, int count, Executor& executor) {
  Random random(seed);
  std::vector<TrainingLayer> layers;
  for (int i = 0; i < count; ++i)
    layers.push_back(run_layer(drawn_layer(random, i, seed), executor));
  return layers;
}

std::vector<Bar> training_bars(const std::vector<TrainingLayer>& layers) {
  std::vector<double> ratios;
  for (const TrainingLayer& layer : layers)
    if (layer.ratio()) ratios.push_back(*layer.ratio());
  std::ranges::sort(ratios);
  const bool any = !ratios.empty();
  using enum Bar::Side;
  return {{"training layers that ran", double(ratios.size()), AtLeast, double(layers.size())},
          {"training: simulated cycles / best plan nearby, median",
           any ? ratios[ratios.size() / 2] : 0, AtMost, 1.03},
          {"training: simulated cycles / best plan nearby, worst", any ? ratios.back() : 0, AtMost,
           1.1}};
}

std::string to_text(const std::vector<TrainingLayer>& layers) {
  std::string text =
      fmt::format("{:<37}{:>14}{:>10}{:>10}{:>14}{:>10}{:>8}\n", "layer x*y*z block density type",
                  "chosen", "planned", "simulated", "best nearby", "simulated", "ratio");
  for (const TrainingLayer& layer : layers) text += row_of(layer);
  return text;
}

}  // namespace tessera::bench
