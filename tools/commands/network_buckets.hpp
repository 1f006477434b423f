#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::tools {

// The encoded weights of the layers of a network; a dense layer has none.
using NetworkBuckets = std::vector<std::optional<partitioner::SavedWeights>>;

// Returns the bytes of the file --save-buckets, an io::Archive with the weights of all sparse
// layers. Every layer must have weights.
std::string network_bucket_file(const runtime::Network& network);

// Reads such a file. Throws Error{BadInput} for other files, for one that is damaged, and for one
// of another number of layers or with other dense layers.
NetworkBuckets read_network_buckets(const std::string& path, const planner::NetworkSpec& spec);

// Gives a sparse layer, counted from 0, its weights. Throws Error{BadInput}, which names the file,
// for weights of another network, plan or machine.
void restore_layer(runtime::Network& network, std::int64_t layer,
                   const partitioner::SavedWeights& saved, const std::string& path);

}  // namespace tessera::tools
