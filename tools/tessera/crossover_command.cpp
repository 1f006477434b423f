#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/tools/block_study.hpp"
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

// The points of the curve, close enough for a line on a logarithmic axis.
constexpr double kDensities[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1};

struct CrossoverArguments : LayerArguments {
  internal::StudyOutput output;
};

using Json = nlohmann::ordered_json;

// The crossover of one block shape, and its curve if a page or JSON shows it.
struct Crossing {
  std::string block;
  double density = 0;
  std::optional<std::int64_t> cycles;
  Json curve = Json::array();
};

Crossing crossing_of(BlockStudy& layer, std::int64_t side, std::int64_t dense, bool with_curve) {
  const BlockShape block{side, side};
  const auto cycles_at = [&](double density) -> std::optional<std::int64_t> {
    const auto cycles = layer.cheapest_cycles(block, density);
    if (!cycles) return std::nullopt;
    return cycles->value;
  };
  Crossing crossing{fmt::format("{}x{}", side, side), layer.pays_up_to(block, Cycles(dense)), {}};
  if (crossing.density > 0) crossing.cycles = cycles_at(crossing.density);
  if (!with_curve) return crossing;
  for (const double density : kDensities) {
    const auto cycles = cycles_at(density);
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

std::string json_of(const BlockStudy& layer, const std::string& machine, std::int64_t dense,
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
std::vector<Crossing> cross_all(BlockStudy& layer, std::int64_t dense, bool with_curve,
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
  BlockStudy layer(a);
  internal::catch_interrupts();
  internal::Progress progress(false);
  progress.set("planning the dense layer");
  const auto dense_plan = layer.dense().plan;
  if (!dense_plan)
    throw Error(ErrorCode::NoSolution,
                "the dense layer has no plan; use a machine with more memory");
  const std::int64_t dense = dense_plan->cost.cycles.value;
  const auto crossings = cross_all(layer, dense, given.output.wants_data(), progress);
  return internal::write_study(given.output, text_of(dense, crossings),
                               json_of(layer, a.machine, dense, crossings));
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
