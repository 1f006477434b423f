#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tessera::tools {

// Each function adds one sub-command. If the command line chooses it, parsing sets `run` to a
// function that performs the command and returns the exit code of the program.

// Adds `run`: the same as the program sparse_fc_layer, with the same options.
void add_run_command(CLI::App& app, std::function<int()>& run);

// Adds `bench`: runs the problems of a batch file.
void add_bench_command(CLI::App& app, std::function<int()>& run);

// Adds `convert`: writes a file of weights in another format.
void add_convert_command(CLI::App& app, std::function<int()>& run);

// Adds `compare`: prints the differences between two reports.
void add_compare_command(CLI::App& app, std::function<int()>& run);

// Adds `report`: makes the page of a saved report.
void add_report_command(CLI::App& app, std::function<int()>& run);

// Adds `sweep`: plans one layer on machines that differ in one figure.
void add_sweep_command(CLI::App& app, std::function<int()>& run);

// Adds `crossover`: finds the density below which sparse kernels are faster than dense ones.
void add_crossover_command(CLI::App& app, std::function<int()>& run);

// Adds `advise`: advises on the block size for every layer of a file.
void add_advise_command(CLI::App& app, std::function<int()>& run);

// Adds `network`: plans a network of layers together and runs it as one program.
void add_network_command(CLI::App& app, std::function<int()>& run);

// Adds `train`: trains a sparse network on images.
void add_train_command(CLI::App& app, std::function<int()>& run);

// Adds `matmul`: multiplies a sparse and a dense matrix and checks the result.
void add_matmul_command(CLI::App& app, std::function<int()>& run);

// Adds `machine`: prints the known machines.
void add_machine_command(CLI::App& app, std::function<int()>& run);

// Adds `doctor`: prints the features of this build and of this computer.
void add_doctor_command(CLI::App& app, std::function<int()>& run);

}  // namespace tessera::tools
