#include "tessera/bench/partitioner/training.hpp"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/bench/partitioner/workload.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

struct TrainingLayer {
  std::int64_t side, batch;
  double density;
  std::int64_t block;
  DataType data_type;
};

// The plans of all passes: the planner's choice, or one layout whose GradA has separate buckets.
enum class Layouts { AsPlanned, SeparateGradA };

// One layout of a plan: its pattern (R or its transpose), grid and storage.
struct Layout {
  sparse::CheckedCsr<float> matrix;
  partitioner::TileGrid grid;
  partitioner::Buckets buckets;
  std::vector<float> bucket_values;

  void encode(Executor& executor) {
    if (partitioner::encode_into(buckets, matrix, grid, executor))
      throw std::runtime_error("the pattern does not fit");
  }

  void fill(Executor& executor) {
    bucket_values.resize(static_cast<std::size_t>(grid.buckets() * buckets.values_per_bucket()));
    partitioner::refill<float, float>(buckets, matrix->values, bucket_values, executor);
  }

  void check() const {
    if (partitioner::decode(buckets, std::span<const float>(bucket_values)) != *matrix)
      throw std::runtime_error("decoding gives another matrix");
  }
};

planner::Options options_of(Layouts layouts) {
  planner::Options options = planner::sparse_options();
  if (layouts == Layouts::SeparateGradA) {
    options.per_pass_plans = false;
    options.shared_buckets = false;
  }
  return options;
}

std::vector<Layout> layouts_of(const TrainingLayer& layer, Layouts layouts) {
  const Problem problem{.size = {1, layer.side, layer.side, layer.batch},
                        .block = {layer.block, layer.block},
                        .density = layer.density,
                        .data_type = layer.data_type,
                        .grad_a = true,
                        .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options_of(layouts));
  const auto matrix = sparse::checked(
      sparse::random_pattern(layer.side, layer.side, problem.block, layer.density, kPatternSeed));
  if (plan.backward.empty()) return {{matrix, runtime::tile_grid(problem, plan, machine), {}, {}}};
  const auto two = planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
  return {{matrix, runtime::tile_grid(two.forward, plan, machine), {}, {}},
          {sparse::transpose(matrix),
           runtime::tile_grid(two.transposed, plan.backward.front(), machine),
           {},
           {}}};
}

std::string name_of(const TrainingLayer& layer, Layouts layouts) {
  return fmt::format("encode {}^2 {} block {} {} z {}, {}", layer.side, layer.density, layer.block,
                     to_string(layer.data_type), layer.batch,
                     layouts == Layouts::SeparateGradA ? "separate GradA" : "as planned");
}

void layer_rate(Report& report, const TrainingLayer& layer, Layouts kind) {
  std::vector<Layout> layouts = layouts_of(layer, kind);
  const auto one = sequential();
  for (Layout& layout : layouts) {
    layout.encode(*one);
    layout.fill(*one);
    layout.check();
  }
  const auto t = medians({[&] {
                            for (Layout& layout : layouts) layout.encode(*one);
                          },
                          [&] {
                            for (Layout& layout : layouts) layout.fill(*one);
                          }});
  double buckets = 0;
  for (const Layout& layout : layouts) buckets += static_cast<double>(layout.grid.buckets());
  const auto non_zeros = static_cast<double>(layouts.front().matrix->values.size());
  report.at_least(name_of(layer, kind) + ", million/s", non_zeros / kMillion / (t[0] + t[1]), 100);
  report.tell("  words and source map alone", non_zeros / kMillion / t[0]);
  report.tell("  nanoseconds for each bucket", 1e9 * (t[0] + t[1]) / buckets);
  report.tell("  non-zeros of a bucket", static_cast<double>(layouts.size()) * non_zeros / buckets);
}

}  // namespace

std::vector<TrainingRate> training_rates() {
  const std::vector<TrainingLayer> elements = {
      {2048, 64, 0.1, 1, DataType::Half},  {2048, 256, 0.1, 1, DataType::Float},
      {2048, 64, 0.01, 1, DataType::Half}, {1024, 64, 0.1, 1, DataType::Half},
      {4096, 64, 0.1, 1, DataType::Half},  {4096, 64, 0.02, 1, DataType::Float},
      {512, 64, 0.25, 1, DataType::Half}};
  const std::vector<TrainingLayer> blocks = {{2048, 64, 0.1, 4, DataType::Half},
                                             {2048, 64, 0.05, 8, DataType::Half},
                                             {2048, 64, 0.1, 16, DataType::Half}};
  std::vector<TrainingRate> rates;
  const auto add = [&rates](const TrainingLayer& layer, Layouts layouts) {
    rates.push_back({name_of(layer, layouts),
                     [layer, layouts](Report& report) { layer_rate(report, layer, layouts); }});
  };
  for (const TrainingLayer& layer : elements) add(layer, Layouts::SeparateGradA);
  for (const auto& layers : {elements, blocks})
    for (const TrainingLayer& layer : layers) add(layer, Layouts::AsPlanned);
  return rates;
}

}  // namespace tessera::bench
