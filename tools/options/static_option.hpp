#pragma once

#include <initializer_list>

#include "tessera/planner/static_plan.hpp"
#include "tessera/tools/options/host_options.hpp"

namespace tessera::tools {

// Adds --static.
void add_static_option(CLI::App& app, bool& is_static);

// With --static, throws CLI::ValidationError if the command line gives one of `options`, which have
// no meaning there, asks for the cheapest block or names this computer.
void refuse_dynamic_options(const CLI::App& app, const LayerArguments& arguments, bool is_static,
                            std::initializer_list<RefusedOption> options);

// Returns the options of a static plan that the arguments give, on top of `base`. Throws
// Error{InvalidArgument} if they set any other option of the planner.
planner::StaticOptions static_options(const LayerArguments& arguments,
                                      const planner::Options& base);

}  // namespace tessera::tools
