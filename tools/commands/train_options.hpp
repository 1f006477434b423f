#pragma once

#include <vector>

#include "tessera/planner/network.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/commands/train_arguments.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::tools {

// Reads the file of the network, if there is one, and returns the arguments with what it says.
// Throws the errors of train::read_network.
TrainArguments with_network_file(TrainArguments a);

// Return the options of the network and of the training.
train::NetworkOptions network_of(const TrainArguments& a);
train::TrainOptions options_of(const TrainArguments& a, const train::DataSet& data);

// Returns the weights that files have, and draws all others.
std::vector<sparse::Csr<float>> weights_before(const TrainArguments& a);

// Returns what is trained, with its optimiser, whose learning rate is the first one.
planner::NetworkSpec spec_in(const TrainArguments& a);

}  // namespace tessera::tools
