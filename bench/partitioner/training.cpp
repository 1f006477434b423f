#include "tessera/bench/partitioner/training.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/base/half.hpp"
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

  double non_zeros(const sparse::Csr<float>& matrix) const {
    return static_cast<double>(matrix.blocks() * block * block);
  }
};

// One layout of a plan: its pattern (R or its transpose), grid and storage.
struct Layout {
  sparse::CheckedCsr<float> matrix;
  partitioner::TileGrid grid;
  partitioner::Buckets buckets;
  std::vector<float> values;
  std::vector<Half> half_values, half_bucket_values;
  std::vector<float> bucket_values;

  void encode(Executor& executor) {
    if (partitioner::encode_into(buckets, matrix, grid, executor))
      throw std::runtime_error("the pattern does not fit");
  }

  void fill(Executor& executor) {
    const auto count = static_cast<std::size_t>(grid.buckets() * buckets.values_per_bucket());
    bucket_values.resize(count);
    partitioner::refill<float, float>(buckets, matrix->values, bucket_values, executor);
  }
};

// The two kinds of plans for all passes: as the planner likes, or one layout whose GradA has
// separate buckets.
enum class Layouts { AsPlanned, SeparateGradA };

std::vector<Layout> layouts_of(const TrainingLayer& layer, Layouts kind) {
  const Problem problem{.size = {1, layer.side, layer.side, layer.batch},
                        .block = {layer.block, layer.block},
                        .density = layer.density,
                        .data_type = layer.data_type,
                        .grad_a = true,
                        .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");
  planner::Options options = planner::sparse_options();
  if (kind == Layouts::SeparateGradA) {
    options.per_pass_plans = false;
    options.shared_buckets = false;
  }
  const auto planned = planner::plan(problem, machine, options);
  if (planned.status != planner::PlanStatus::Found) return {};
  const planner::Plan& plan = planned.plan;
  const auto csr = sparse::checked(sparse::random_pattern(
      layer.side, layer.side, problem.block, layer.density, kPatternSeed));
  std::vector<Layout> layouts;
  if (plan.backward.empty()) {
    layouts.push_back({csr, runtime::tile_grid(problem, plan, machine)});
  } else {
    const auto two = planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
    layouts.push_back({csr, runtime::tile_grid(two.forward, plan, machine)});
    layouts.push_back({sparse::transpose(csr),
                       runtime::tile_grid(two.transposed, plan.backward.front(), machine)});
  }
  return layouts;
}

void layer_rate(Report& report, const TrainingLayer& layer, Layouts kind) {
  std::vector<Layout> layouts = layouts_of(layer, kind);
  const std::string name = fmt::format(
      "encode {}^2 density {} block {} {} z {}, {}", layer.side, layer.density, layer.block,
      to_string(layer.data_type), layer.batch,
      kind == Layouts::SeparateGradA ? "separate GradA" : "all passes as planned");
  if (layouts.empty()) {
    fmt::print("{}: no plan\n", name);
    return;
  }
  const auto one = sequential();
  for (Layout& layout : layouts) {
    layout.encode(*one);
    layout.fill(*one);
    if (partitioner::decode(layout.buckets, std::span<const float>(layout.bucket_values)) !=
        *layout.matrix)
      throw std::runtime_error("decoding gives another matrix");
  }
  const auto each = [&](auto&& body) {
    for (Layout& layout : layouts) body(layout);
  };
  const auto t = medians({[&] { each([&](Layout& l) { l.encode(*one); }); },
                          [&] { each([&](Layout& l) { l.fill(*one); }); }}, std::getenv("TCASE") ? 1000 : 41);
  double bytes = 0;
  for (const Layout& l : layouts)
    bytes += static_cast<double>(l.grid.buckets() *
                                 ((l.grid.meta_words + l.grid.grad_a_words) * l.grid.word_bits / 8 +
                                  4 * l.grid.blocks + 4 * l.buckets.values_per_bucket()));
  const double million = layer.non_zeros(*layouts.front().matrix) / kMillion;
  report.at_least(name, million / (t[0] + t[1]), 100);
  report.tell("  words and source map alone", million / t[0]);
  for (const Layout& l : layouts) {
    const auto& g = l.grid;
    fmt::print("    {}x{}x{} gradA {} gradW {} words {} {} of {} {} blocks {} of {}\n", g.splits.x, g.splits.y, g.splits.z,
               g.separate_grad_a, g.grad_w, l.buckets.stats.fullest_words, l.buckets.stats.fullest_grad_a_words, g.meta_words, g.grad_a_words, l.buckets.stats.fullest_blocks, g.blocks);
  }
  fmt::print("    bytes per non-zero {:.1f}\n", bytes / million / kMillion);
}

}  // namespace

void training_rates(Report& report) {
  for (const Layouts kind : {Layouts::SeparateGradA, Layouts::AsPlanned})
    for (const TrainingLayer& layer : {
             TrainingLayer{2048, 64, 0.1, 1, DataType::Half},
             TrainingLayer{2048, 256, 0.1, 1, DataType::Float},
             TrainingLayer{2048, 64, 0.01, 1, DataType::Half},
             TrainingLayer{1024, 64, 0.1, 1, DataType::Half},
             TrainingLayer{4096, 64, 0.1, 1, DataType::Half},
             TrainingLayer{4096, 64, 0.02, 1, DataType::Float},
             TrainingLayer{512, 64, 0.25, 1, DataType::Half},
             TrainingLayer{2048, 64, 0.1, 4, DataType::Half},
             TrainingLayer{2048, 64, 0.05, 8, DataType::Half},
             TrainingLayer{2048, 64, 0.1, 16, DataType::Half},
         })
      if (const char* f = std::getenv("TCASE"); !f || ((kind == Layouts::AsPlanned) == (f[0] == 'p') && fmt::format("{}-{}-{}", layer.side, layer.density, layer.block) == f + 1))
      if (kind == Layouts::AsPlanned || layer.block == 1) layer_rate(report, layer, kind);
}

}  // namespace tessera::bench
