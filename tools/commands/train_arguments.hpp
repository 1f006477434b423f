#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network_json.hpp"
#include "tessera/train/rewire/method.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The options of `tessera train`.
struct TrainArguments {
  std::string file;                             // of a network; empty: the options describe it
  std::optional<planner::NetworkFile> network;  // that the file describes
  bool gives_rate = false;                      // the options, even if there is a file
  bool resident = false;                        // as one program of a modelled machine
  std::vector<std::int64_t> layers = {784, 1024, 10};
  std::string method = "rigl", distribution = "uniform";
  double density = 0.1, learning_rate = 0.1, fraction = 0.3;
  double factor = train::Sampled{}.factor;
  std::string optimiser = "sgd";
  std::string density_schedule;  // the curve from first_density to density; empty: none
  double first_density = 1;
  std::string search = "exact";  // of method top-k
  std::int64_t min_per_neuron = 0;
  bool constant_fan_in = false;
  std::int64_t block = 1, batch = 128, epochs = 30, every = 100, seed = 1;
  std::int64_t images = 0;  // that are used of each part of the data set; 0: all
  std::string machine = device::kHostMachine;
  DataType data_type = DataType::Float;  // of the passes
  int threads = 0;
  double timeout_seconds = 300;  // of a rank that waits for others
  std::string data, checkpoint, resume;
  bool beside_dense = false;
  bool csv = false, json = false;
  std::string html;

  // Return whether the method changes patterns, moves a share of the blocks, and has candidates.
  bool rewires() const { return method != "dense" && method != "static"; }
  bool moves_a_share() const { return rewires() && method != "prune" && method != "top-k"; }
  bool samples() const { return method == "sampled" || (method == "top-k" && search != "exact"); }
};

// Adds the options to a command.
void add_train_options(CLI::App& app, TrainArguments& arguments);

}  // namespace tessera::tools
