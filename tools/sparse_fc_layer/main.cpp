#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"
#include "tessera/tools/sparse_fc_layer/run.hpp"

int main(int argc, char** argv) {
  using namespace tessera;
  return tools::guarded_main("sparse_fc_layer", [&] {
    const tools::Parsed parsed = tools::parse_arguments(argc, argv);
    if (parsed.exit) return *parsed.exit;
    const tools::LayerRun run = tools::run_layer(parsed.arguments);
    tools::print_results(to_text(run));
    return int(tools::exit_code_of(run.report));
  });
}
