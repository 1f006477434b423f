#pragma once

#include <initializer_list>

#include "tessera/tools/internal/host_options.hpp"

namespace tessera::tools::internal {

// Adds --static.
void add_static_option(CLI::App& app, bool& is_static);

// With --static, throws CLI::ValidationError if the command line gives one of `options`, which have
// no meaning there, asks for the cheapest block or names this computer.
void refuse_dynamic_options(const CLI::App& app, const LayerArguments& arguments, bool is_static,
                            std::initializer_list<RefusedOption> options);

}  // namespace tessera::tools::internal
