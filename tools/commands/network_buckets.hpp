#pragma once

#include <string>
#include <vector>

#include "tessera/runtime/network.hpp"

namespace tessera::tools {

// The encoded weights of all sparse layers of a network in one file:
//
//   "TSWNET1\n"        8 bytes
//   layers             u64, little-endian
//   lengths            u64 for each layer: the bytes of its part; 0 for a dense layer
//   parts              of the sparse layers, in their order, as partitioner::write_saved_weights
//                      writes them, each with its version and checksum
//
// Returns the bytes of the file. Every layer must have weights.
std::string network_bucket_file(const runtime::Network& network);

// Reads such a file and returns the part of each layer; it is empty for a dense one. Throws
// Error{BadInput} for other files, for one that is cut off or too long, and for one of another
// number of layers or with other dense layers.
std::vector<std::string> read_network_buckets(const std::string& path,
                                              const planner::NetworkSpec& spec);

// Gives a sparse layer, counted from 0, the weights of its part. Throws Error{BadInput}, which
// names the file, for weights of another network, plan or machine and for a part that is damaged.
void restore_layer(runtime::Network& network, std::int64_t layer, const std::string& part,
                   const std::string& path);

}  // namespace tessera::tools
