#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tessera::tools {

// Each adds one sub-command; when that is chosen, parsing sets `run` to what it does, which gives
// the program's exit code.

// What sparse_fc_layer does, with its options.
void add_run_command(CLI::App& app, std::function<int()>& run);
// Problems of a batch file, one a line.
void add_bench_command(CLI::App& app, std::function<int()>& run);
// What is in a file of weights, and what it would cost.
void add_inspect_command(CLI::App& app, std::function<int()>& run);
// A file of weights in another format.
void add_convert_command(CLI::App& app, std::function<int()>& run);
// What changed between two reports.
void add_compare_command(CLI::App& app, std::function<int()>& run);
// One layer on machines that differ in one figure.
void add_sweep_command(CLI::App& app, std::function<int()>& run);
// The density below which sparse kernels beat dense ones.
void add_crossover_command(CLI::App& app, std::function<int()>& run);
// The machines there are.
void add_machine_command(CLI::App& app, std::function<int()>& run);
// What this build and this computer have.
void add_doctor_command(CLI::App& app, std::function<int()>& run);

}  // namespace tessera::tools
