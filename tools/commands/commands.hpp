#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tessera::tools {

// Each function adds the sub-command of its name, whose description is in its source. If the
// command line chooses it, parsing sets `run`, which must live until then, to a function that
// performs the command, returns the exit code of the program and throws the errors of the stages.
void add_advise_command(CLI::App& app, std::function<int()>& run);
void add_crossover_command(CLI::App& app, std::function<int()>& run);
void add_sweep_command(CLI::App& app, std::function<int()>& run);
void add_run_command(CLI::App& app, std::function<int()>& run);
void add_train_command(CLI::App& app, std::function<int()>& run);
void add_network_command(CLI::App& app, std::function<int()>& run);
void add_matmul_command(CLI::App& app, std::function<int()>& run);
void add_plan_command(CLI::App& app, std::function<int()>& run);
void add_convert_command(CLI::App& app, std::function<int()>& run);
void add_compare_command(CLI::App& app, std::function<int()>& run);
void add_report_command(CLI::App& app, std::function<int()>& run);
void add_machine_command(CLI::App& app, std::function<int()>& run);
void add_doctor_command(CLI::App& app, std::function<int()>& run);
void add_bench_command(CLI::App& app, std::function<int()>& run);

}  // namespace tessera::tools
