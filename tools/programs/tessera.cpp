#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/ranks/mpi_ranks.hpp"
#include "tessera/tools/run/ranks.hpp"

int main(int argc, char** argv) {
  using namespace tessera::tools;
  // Each sub-command has one file and one entry here, under the heading that help gives it.
  struct Group {
    const char* name;
    std::vector<void (*)(CLI::App&, std::function<int()>&)> commands;
  };
  const Group kGroups[] = {
      {"Ask", {add_advise_command, add_crossover_command, add_sweep_command}},
      {"Do", {add_run_command, add_train_command, add_network_command, add_matmul_command}},
      {"Files", {add_plan_command, add_convert_command, add_compare_command, add_report_command}},
      {"This computer", {add_machine_command, add_doctor_command, add_bench_command}}};
  use_mpi_ranks();
  return guarded_main("tessera", [&] {
    CLI::App app("Plans, runs and studies sparse fully connected layers on modelled tile machines.",
                 "tessera");
    app.footer(std::string(kExitCodes) +
               "\nExample: tessera plan --input-size 1024 --output-size 1024 --density 0.1\n"
               "tessera COMMAND --help lists the options of a command.");
    app.require_subcommand(1);
    std::function<int()> run;
    for (const Group& group : kGroups)
      for (const auto add_command : group.commands) {
        add_command(app, run);
        app.get_subcommands([](const CLI::App*) { return true; }).back()->group(group.name);
      }
    if (const auto exit = parse_command_line(app, argc, argv)) return *exit;
    const std::string command = app.get_subcommands().front()->get_name();
    if (command == "run" || command == "train" || command == "bench") return run();
    return in_one_process(("tessera " + command).c_str(), run);
  });
}
