#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/tools/dense_verdict.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_options.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/numbers.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/tessera/commands.hpp"
#include "tessera/tools/tessera/host_commands.hpp"

namespace tessera::tools {
namespace {

constexpr std::int64_t kBlockSides[] = {1, 4, 8, 16};
// The points of the curve, close enough for a line on a logarithmic axis.
constexpr double kDensities[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1};

struct CrossoverArguments : LayerArguments {
  internal::StudyOutput output;
};

// Plans a layer at different densities for the cycles that the planner estimates.
class Layer {
 public:
  explicit Layer(const LayerArguments& a)
      : a_(a), source_(a.plan_cache), machine_(make_machine(a)) {}

  // Returns the cycles of the cheaper of blocks and of the elements that they are made of: a
  // pattern of blocks can also be stored element by element.
  std::optional<std::int64_t> sparse_cycles(BlockShape block, double density) {
    const auto blocks = cycles_as(block, density);
    if (block.is_element()) return blocks;
    const auto elements = cycles_as({1, 1}, density);
    if (!blocks || !elements) return blocks ? blocks : elements;
    return std::min(*blocks, *elements);
  }

  std::optional<std::int64_t> dense_cycles() {
    const auto plan = dense_baseline(problem({1, 1}, 1), machine_, make_options(a_, {}));
    if (!plan) return std::nullopt;
    return plan->cost.cycles.value;
  }

  Problem problem(BlockShape block, double density) const {
    Problem problem = problem_of(a_);
    problem.block = block;
    problem.density = density;
    return problem;
  }

 private:
  std::optional<std::int64_t> cycles_as(BlockShape block, double density) {
    planner::Options options = make_options(a_, {});
    options.constraints.use_dense = false;
    const planner::PlanResult result = source_.plan(problem(block, density), machine_, options);
    if (!result.has_plan) return std::nullopt;
    return result.plan.cost.cycles.value;
  }

  const LayerArguments& a_;
  PlanSource source_;
  device::Machine machine_;
};

// Returns the largest density, in steps of a thousandth, at which sparse costs less than dense. The
// search halves the interval, because the cycles of sparse plans grow with density.
double crossover_density(Layer& layer, BlockShape block, std::int64_t dense_cycles) {
  std::int64_t low = 0, high = 1000;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    const auto sparse = layer.sparse_cycles(block, double(middle) / 1000);
    if (sparse && *sparse < dense_cycles)
      low = middle;
    else
      high = middle - 1;
  }
  return double(low) / 1000;
}

using Json = nlohmann::ordered_json;

// The crossover of one block shape, and its curve if a page or JSON shows it.
struct Crossing {
  std::string block;
  double density = 0;
  std::optional<std::int64_t> cycles;
  Json curve = Json::array();
};

Crossing crossing_of(Layer& layer, std::int64_t side, std::int64_t dense, bool with_curve) {
  const BlockShape block{side, side};
  Crossing crossing{fmt::format("{}x{}", side, side), crossover_density(layer, block, dense), {}};
  if (crossing.density > 0) crossing.cycles = layer.sparse_cycles(block, crossing.density);
  if (!with_curve) return crossing;
  for (const double density : kDensities) {
    const auto cycles = layer.sparse_cycles(block, density);
    crossing.curve.push_back(
        {{"density", density}, {"cycles", cycles ? Json(*cycles) : Json(nullptr)}});
  }
  return crossing;
}

// Returns the verdict: the densities from which on dense costs less, or that it always does.
std::string verdict_of(const std::vector<Crossing>& crossings) {
  std::string pays;
  for (const Crossing& c : crossings)
    if (c.density > 0) pays += fmt::format("{:.3g} ({}), ", c.density, c.block);
  if (pays.empty()) return "verdict    dense wins at every density from 0.001 on, modelled\n";
  return fmt::format("verdict    sparse pays up to density {}modelled\n", pays);
}

std::string text_of(std::int64_t dense, const std::vector<Crossing>& crossings) {
  std::string text = fmt::format("dense: {} cycles (planned)\n{:<10}{:>24}{:>24}\n", dense, "block",
                                 "sparse wins up to", "cycles there");
  for (const Crossing& c : crossings)
    text += fmt::format("{:<10}{:>24.3f}{:>24}\n", c.block, c.density,
                        c.cycles ? std::to_string(*c.cycles) : "-");
  return text + "densities in steps of 0.001; cycles are modelled\n" + verdict_of(crossings);
}

std::string json_of(const Layer& layer, const std::string& machine, std::int64_t dense,
                    const std::vector<Crossing>& crossings) {
  Json blocks = Json::array();
  for (const Crossing& c : crossings)
    blocks.push_back({{"block", c.block},
                      {"crossover_density", c.density},
                      {"cycles", c.cycles ? Json(*c.cycles) : Json(nullptr)},
                      {"curve", c.curve}});
  return Json{{"schema_version", 1},
              {"study", "crossover"},
              {"status", crossings.size() == std::size(kBlockSides) ? "complete" : "partial"},
              {"layer", internal::layer_words(layer.problem({1, 1}, 1))},
              {"machine", machine},
              {"dense_cycles", dense},
              {"blocks", std::move(blocks)}}
             .dump(2) +
         "\n";
}

// Returns the crossovers of all block shapes; fewer after Ctrl-C.
std::vector<Crossing> cross_all(Layer& layer, std::int64_t dense, bool with_curve,
                                internal::Progress& progress) {
  std::vector<Crossing> crossings;
  for (const std::int64_t side : kBlockSides) {
    if (internal::is_interrupted()) break;
    progress.set(fmt::format("planning {0}x{0} blocks", side), std::ssize(crossings),
                 std::ssize(kBlockSides));
    crossings.push_back(crossing_of(layer, side, dense, with_curve));
  }
  progress.hide();
  return crossings;
}

int crossover(const CrossoverArguments& given) {
  const LayerArguments a = with_layer_keys(given);
  if (is_host(a)) return print_results(host_crossover(a)), int(kOk);
  Layer layer(a);
  internal::catch_interrupts();
  internal::Progress progress(false);
  progress.set("planning the dense layer");
  const auto dense = layer.dense_cycles();
  if (!dense)
    throw Error(ErrorCode::NoSolution,
                "the dense layer has no plan; use a machine with more memory");
  const auto crossings = cross_all(layer, *dense, given.output.wants_data(), progress);
  return internal::write_study(given.output, text_of(*dense, crossings),
                               json_of(layer, a.machine, *dense, crossings));
}

}  // namespace

void add_crossover_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "crossover", "Finds the density up to which a sparse layer costs less than a dense one.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera crossover --input-size 1024 --output-size 1024 "
                  "--batch-size 64 --single-phase fwd");
  const auto a = std::make_shared<CrossoverArguments>();
  for (auto* size : {command->add_option("--input-size", a->input_size, "number of inputs"),
                     command->add_option("--output-size", a->output_size, "number of outputs")})
    internal::require_whole(size, 1, internal::kLargestSize)->required();
  internal::add_layer_options(*command, *a);
  internal::add_machine_options(*command, *a);
  internal::add_study_options(*command, a->output);
  command->remove_option(command->get_option("--block-size"));
  command->callback([command, a, &run] {
    const char* const why = "shows planned cycles, but on this computer times are measured";
    internal::refuse_tile_options(*command, *a,
                                  {"--tiles-per-ipu", {"--json", why}, {"--html", why}});
    run = [a] { return crossover(*a); };
  });
}

}  // namespace tessera::tools
