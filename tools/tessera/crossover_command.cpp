#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/tessera/commands.hpp"
#include "tessera/tools/tessera/host_commands.hpp"

namespace tessera::inline v0::tools {
namespace {

constexpr std::int64_t kSides[] = {1, 4, 8, 16};

// Cycles the planner expects of a layer at some density, kept sparse or made dense.
class Layer {
 public:
  explicit Layer(const LayerArguments& a)
      : a_(a), source_(a.plan_cache), machine_(make_machine(a)) {}

  std::optional<std::int64_t> cycles(BlockShape block, double density, bool dense) {
    planner::Options options = make_options(a_, {});
    options.constraints.use_dense = dense;
    const planner::Problem problem{.size = {1, a_.output_size, a_.input_size, a_.batch_size},
                                   .block = block,
                                   .density = density,
                                   .data_type = a_.data_type,
                                   .partials_type = a_.partials_type,
                                   .grad_a = a_.grad_a(),
                                   .grad_w = a_.grad_w()};
    const planner::PlanResult result = source_.plan(problem, machine_, options);
    if (!result.has_plan) return std::nullopt;
    return result.plan.cost.cycles.value;
  }

 private:
  const LayerArguments& a_;
  PlanSource source_;
  device::Machine machine_;
};

// The largest density, in steps of a thousandth, up to which sparse costs less than dense; by
// halving, as cycles of sparse plans grow with density.
double crossover_density(Layer& layer, BlockShape block, std::int64_t dense_cycles) {
  std::int64_t low = 0, high = 1000;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    const auto sparse = layer.cycles(block, double(middle) / 1000, false);
    if (sparse && *sparse < dense_cycles)
      low = middle;
    else
      high = middle - 1;
  }
  return double(low) / 1000;
}

// The cheapest way to hold all elements, as a dense plan or as blocks that are all stored.
std::optional<std::int64_t> dense_cycles(Layer& layer) {
  std::optional<std::int64_t> best;
  for (const std::int64_t side : kSides)
    for (const bool is_dense : {true, false})
      if (const auto cycles = layer.cycles({side, side}, 1, is_dense))
        best = std::min(best.value_or(*cycles), *cycles);
  return best;
}

int crossover(const LayerArguments& given) {
  const LayerArguments a = with_layer_keys(given);
  if (is_host(a)) return print_results(host_crossover(a)), int(kOk);
  Layer layer(a);
  const auto dense = dense_cycles(layer);
  if (!dense) throw Error(ErrorCode::NoSolution, "the dense layer has no plan; give more memory");
  std::string text = fmt::format("dense: {} cycles (planned)\n{:<10}{:>24}{:>24}\n", *dense,
                                 "block", "sparse wins up to", "cycles there");
  for (const std::int64_t side : kSides) {
    const BlockShape block{side, side};
    const double density = crossover_density(layer, block, *dense);
    const auto there = density > 0 ? layer.cycles(block, density, false) : std::nullopt;
    text += fmt::format("{:<10}{:>24.3f}{:>24}\n", fmt::format("{}x{}", side, side), density,
                        there ? std::to_string(*there) : "-");
  }
  print_results(text + "densities in steps of 0.001; cycles are modelled\n");
  return kOk;
}

}  // namespace

void add_crossover_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "crossover", "The density up to which a sparse layer costs less than the dense one.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera crossover --input-size 1024 --output-size 1024 "
                  "--batch-size 64 --single-phase fwd");
  const auto a = std::make_shared<LayerArguments>();
  const CLI::Range sizes(std::int64_t{1}, std::int64_t{INT32_MAX});
  command->add_option("--input-size", a->input_size, "inputs")->check(sizes)->required();
  command->add_option("--output-size", a->output_size, "outputs")->check(sizes)->required();
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  command->remove_option(command->get_option("--block-size"));
  command->callback([command, a, &run] {
    internal::refuse_tile_options(*command, *a, {"--tiles-per-ipu"});
    run = [a] { return crossover(*a); };
  });
}

}  // namespace tessera::inline v0::tools
