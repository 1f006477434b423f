#pragma once

#include "tessera/tools/options/layer_arguments.hpp"

namespace CLI {
class App;
class Option;
}

// Options that several programs share. Each function adds the options that it names to `app`;
// `arguments` must live until `app` has parsed.
namespace tessera::tools {

// --matrix, or --input-size, --output-size and --density (--sparsity-factor, --sparsity).
void add_weights_options(CLI::App& app, LayerArguments& arguments);

// Adds --groups, after the options of the weights.
void add_groups_option(CLI::App& app, LayerArguments& arguments);

// Returns true if the command line gives the density under any of its names.
bool gives_density(const CLI::App& app);

// Throws CLI::ValidationError if the command line gives neither a matrix nor all of the sizes and
// the density.
void require_weights(const CLI::App& app, const LayerArguments& arguments);

// --batch-size, --block-size, --single-phase, --data-type, --partials-type.
void add_layer_options(CLI::App& app, LayerArguments& arguments);

// --density, --sparsity-factor and --sparsity, which exclude `file`.
void add_density_options(CLI::App& app, LayerArguments& arguments, CLI::Option& file);

// --data-type and --partials-type.
void add_type_options(CLI::App& app, LayerArguments& arguments);

// --block-size alone.
void add_block_option(CLI::App& app, BlockShape& block);

// Lets the --block-size of add_layer_options() also be "auto".
void allow_auto_block(CLI::App& app, LayerArguments& arguments);

// Lets completions offer the names of machines, and returns the option.
CLI::Option* offer_machines(CLI::Option* option);

// --machine, --tiles-per-ipu.
void add_machine_options(CLI::App& app, LayerArguments& arguments);

// --matmul-options, --plan-constraints, --plan, --plan-cache, --on-no-fit.
void add_planner_options(CLI::App& app, LayerArguments& arguments);

// The text about exit codes at the end of every help page.
extern const char* const kExitCodes;

}  // namespace tessera::tools
