#include "tessera/tools/options/host_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "tessera/tools/internal/choices.hpp"

namespace tessera::tools {
namespace {

[[noreturn]] void refuse(const RefusedOption& option) {
  throw CLI::ValidationError(option.name,
                             std::string(option.why) + "; omit it with --machine host");
}

}  // namespace

void add_host_options(CLI::App& app, LayerArguments& a) {
  using host::DenseChoice;
  static const std::map<std::string, DenseChoice> choices{
      {"never", DenseChoice::Never}, {"always", DenseChoice::Always}, {"auto", DenseChoice::Auto}};
  auto* dense = app.add_option("--dense", a.dense,
                               "with --machine host, use of dense kernels for R: never, always or "
                               "auto (for passes whose forecast is faster)");
  take_one_of(dense, choices)->type_name("CHOICE")->default_str("never");
}

void take_host_defaults(const CLI::App& app, LayerArguments& a) {
  if (is_host(a) && app.count("--data-type") == 0) a.data_type = DataType::Float;
}

void refuse_tile_options(const CLI::App& app, const LayerArguments& a,
                         std::initializer_list<RefusedOption> options) {
  if (!is_host(a) && a.dense != host::DenseChoice::Never)
    throw CLI::ValidationError("--dense", "applies only with --machine host");
  if (!is_host(a)) return;
  for (const RefusedOption& option : options)
    if (app.count(option.name) > 0) refuse(option);
  const std::string left = with_layer_keys(a).matmul_options;
  if (!left.empty() && left != "{}") refuse(RefusedOption("--matmul-options"));
}

}  // namespace tessera::tools
