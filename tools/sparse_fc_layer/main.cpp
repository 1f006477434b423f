#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"
#include "tessera/tools/sparse_fc_layer/run.hpp"

int main(int argc, char** argv) {
  using namespace tessera;
  return tools::guarded_main("sparse_fc_layer", [&] {
    const tools::Parsed parsed = tools::parse_arguments(argc, argv);
    if (parsed.exit) return *parsed.exit;
    return tools::run_and_print(parsed.arguments, "sparse_fc_layer");
  });
}
