#include "tessera/tools/internal/host_options.hpp"

#include <CLI/CLI.hpp>

namespace tessera::inline v0::tools::internal {
namespace {

[[noreturn]] void refuse(const std::string& option) {
  throw CLI::ValidationError(option,
                             "is about machines made of tiles; leave it out with --machine "
                             "host");
}

}  // namespace

void refuse_tile_options(const CLI::App& app, const LayerArguments& a,
                         std::initializer_list<const char*> options) {
  if (!is_host(a)) return;
  for (const char* option : options)
    if (app.count(option) > 0) refuse(option);
  // The keys that belong to the layer have been taken out.
  if (!a.matmul_options.empty() && a.matmul_options != "{}") refuse("--matmul-options");
}

}  // namespace tessera::inline v0::tools::internal
