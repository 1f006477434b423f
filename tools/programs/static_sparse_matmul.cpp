#include <CLI/CLI.hpp>

#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/run/run.hpp"
#include "tessera/tools/run/static_matmul_arguments.hpp"

int main(int argc, char** argv) {
  using namespace tessera::tools;
  return guarded_main("static_sparse_matmul", [&] {
    CLI::App app(
        "Multiplies a sparse matrix whose pattern stays by a dense one on a modelled tile machine. "
        "Takes the command lines of PopLibs' program of this name.",
        "static_sparse_matmul");
    app.footer(kExitCodes);
    StaticMatMul request;
    add_static_matmul_options(app, request);
    if (const auto exit = parse_command_line(app, argc, argv)) return *exit;
    const Weights weights =
        request.mask.empty() ? make_weights(request.layer) : read_mask_weights(request);
    if (!request.mask_out.empty()) write_results(request.mask_out, mask_text(request, weights));
    return run_and_print(request.layer, "static_sparse_matmul", &weights);
  });
}
