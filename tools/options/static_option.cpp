#include "tessera/tools/options/static_option.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tools/options/layer_keys.hpp"

namespace tessera::tools {
namespace {

constexpr const char* kNoBuckets = "belongs to patterns that may change, which have buckets";

[[noreturn]] void refuse_with_static(const char* option, const std::string& reason) {
  throw CLI::ValidationError(option, reason + "; omit it with --static");
}

}  // namespace

void add_static_option(CLI::App& app, bool& is_static) {
  app.add_flag("--static", is_static,
               "the pattern is known when the layer is planned and stays: no buckets, every tile "
               "has constant words");
}

void refuse_dynamic_options(const CLI::App& app, const LayerArguments& a, bool is_static,
                            std::initializer_list<RefusedOption> options) {
  if (!is_static) return;
  if (is_host(a)) refuse_with_static("--machine", "is host, which plans every pattern anew");
  if (a.chooses_block)
    refuse_with_static("--block-size",
                       "is auto, which compares plans for patterns that may change");
  for (const char* option : {"--plan-constraints", "--plan", "--plan-cache", "--on-no-fit"})
    if (app.count(option) > 0) refuse_with_static(option, kNoBuckets);
  if (app.count("--partials-type") > 0)
    refuse_with_static("--partials-type", "cannot be chosen: sums have the type of the data");
  for (const RefusedOption& option : options)
    if (app.count(option.name) > 0) refuse_with_static(option.name, option.why);
}

planner::StaticOptions static_options(const LayerArguments& arguments,
                                      const planner::Options& base) {
  std::string text = arguments.matmul_options;
  const LayerKeys keys = take_layer_keys(text, "--matmul-options");
  const planner::Options options = make_options(arguments, base);
  planner::Options rest = options;
  rest.available_memory_proportion = base.available_memory_proportion;
  rest.poplibs_parity = base.poplibs_parity;
  if (rest != base || keys.partials_type)
    throw Error(ErrorCode::InvalidArgument,
                "--matmul-options: a static plan has no buckets and no methods to choose, and its "
                "sums have the type of the data; with --static give availableMemoryProportion, "
                "popLibsParity, doGradAPass and doGradWPass alone");
  return {.available_memory_proportion = options.available_memory_proportion,
          .poplibs_parity = options.poplibs_parity};
}

}  // namespace tessera::tools
