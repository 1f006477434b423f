#pragma once

#include <span>

#include "tessera/planner/network.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/data/idx.hpp"
#include "tessera/train/network.hpp"
#include "tessera/train/trainer.hpp"

// The checks of networks and trainings. All throw Error{InvalidArgument}.
namespace tessera::train::internal {

// Throws unless layers of any target compute the network, and these are its weights.
void check_network(const planner::NetworkSpec& spec, std::span<const sparse::Csr<float>> weights);

// Throws unless layers of this type belong to a network that computes in `own`: those of modelled
// machines may also compute in half.
void check_data_type(DataType type, DataType own, bool is_machine);

// Throws that a state belongs to another network or optimiser, unless it fits.
void check_state(bool fits);

// Throws unless options and data are those of a run of this network.
void check_training(const Network<>& network, const DataSet& data, const TrainOptions& options);

}  // namespace tessera::train::internal
