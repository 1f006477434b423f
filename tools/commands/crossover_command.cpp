#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/host/cpu.hpp"
#include "tessera/study/crossover.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {
namespace {

struct CrossoverArguments : LayerArguments {
  StudyOutput output;
  bool block_given = false;
};

study::Crossover study_of(const CrossoverArguments& given) {
  LayerArguments a = with_layer_keys(given);
  study::CrossoverRequest request{.pattern = load_pattern(a),
                                  .with_curve = given.output.wants_data()};
  if (given.block_given) request.blocks = {a.block};
  for (const std::int64_t side : study::kBlockSides)
    if (!given.block_given) request.blocks.push_back({side, side});
  return {std::move(request), problem_of(a), target_of(a)};
}

int crossover(const CrossoverArguments& a) {
  catch_interrupts();
  Progress progress(false);
  progress.set("the dense layer");
  study::Crossover study = study_of(a);
  while (const BlockShape* block = study.next()) {
    if (is_interrupted()) break;
    progress.set(fmt::format("{} {}x{} blocks", is_host(a) ? "measuring" : "planning", block->rows,
                             block->cols),
                 study.done());
    study.add();
    set_results_so_far(in_form(a.output, study.report(), study.text()));
  }
  progress.hide();
  const int exit = write_study(a.output, study.report(), study.text());
  if (exit != kOk || study.has_cost()) return exit;
  print_message(
      "tessera: no block has a plan; the note of each says why; use more tiles, a smaller batch or "
      "a "
      "smaller layer\n");
  return int(kNothingFits);
}

// Adds the size of the layer, which a file may give.
void add_size_options(CLI::App& app, LayerArguments& a) {
  auto* matrix =
      app.add_option("--matrix", a.matrix,
                     "file of weights, which gives the size; its pattern is compared, too")
          ->type_name("FILE");
  for (auto* size : {app.add_option("--input-size", a.input_size, "number of inputs"),
                     app.add_option("--output-size", a.output_size, "number of outputs")})
    require_whole(size, 1, kLargestSize)->excludes(matrix);
}

void check_together(const CLI::App& app, CrossoverArguments& a) {
  a.block_given = app.count("--block-size") > 0;
  if (a.matrix.empty() && (a.input_size == 0 || a.output_size == 0))
    throw CLI::ValidationError("size", "give --matrix FILE, or --input-size and --output-size");
  take_host_defaults(app, a);
  refuse_tile_options(app, a,
                      {"--tiles-per-ipu", "--plan-constraints", "--plan-cache", "--on-no-fit"});
}

}  // namespace

void add_crossover_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "crossover", "Finds the density up to which a sparse layer costs less than a dense one.");
  command->footer(std::string(kExitCodes) +
                  "\nExample: tessera crossover --input-size 1024 --output-size 1024 "
                  "--batch-size 64 --single-phase fwd");
  const auto a = std::make_shared<CrossoverArguments>();
  add_size_options(*command, *a);
  add_layer_options(*command, *a);
  add_machine_options(*command, *a);
  add_planner_options(*command, *a);
  command->remove_option(command->get_option("--plan"));
  add_study_options(*command, a->output);
  command->callback([command, a, &run] {
    check_together(*command, *a);
    run = [a] { return crossover(*a); };
  });
}

}  // namespace tessera::tools
