#include "tessera/tools/internal/host_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace tessera::tools::internal {
namespace {

[[noreturn]] void refuse(const RefusedOption& option) {
  throw CLI::ValidationError(option.name,
                             std::string(option.why) + "; leave it out with --machine host");
}

}  // namespace

void add_host_options(CLI::App& app, LayerArguments& a) {
  using host::DenseChoice;
  static const std::map<std::string, DenseChoice> choices{
      {"never", DenseChoice::Never}, {"always", DenseChoice::Always}, {"auto", DenseChoice::Auto}};
  app.add_option(
         "--dense", a.dense,
         "with --machine host, multiply R with its zeros: never, always, or auto: where the "
         "forecast says that it is faster")
      ->transform(CLI::CheckedTransformer(choices))
      ->type_name("CHOICE")
      ->default_str("never");
}

void refuse_tile_options(const CLI::App& app, const LayerArguments& a,
                         std::initializer_list<RefusedOption> options) {
  if (!is_host(a) && a.dense != host::DenseChoice::Never)
    throw CLI::ValidationError("--dense", "is about this computer; give --machine host with it");
  if (!is_host(a)) return;
  for (const RefusedOption& option : options)
    if (app.count(option.name) > 0) refuse(option);
  const std::string left = with_layer_keys(a).matmul_options;
  if (!left.empty() && left != "{}") refuse(RefusedOption("--matmul-options"));
}

}  // namespace tessera::tools::internal
