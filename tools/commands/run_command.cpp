#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {

void add_run_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "run", "Plans, encodes and runs one layer and checks every result, like sparse_fc_layer.");
  const auto arguments = std::make_shared<Arguments>();
  add_run_options(*command, arguments, [arguments, &run] {
    run = [arguments] { return run_and_print(*arguments, "tessera run"); };
  });
}

}  // namespace tessera::tools
