#pragma once

#include <string>

#include "tessera/planner/plan_json.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// A file of encoded weights: an io::Archive with partitioner::SavedWeights, the plan of the layer
// (planner::plan_to_json), and scale exponent and source of the weights.
struct BucketFile {
  planner::PlannedLayer planned;
  Weights weights;
};

// Reads the file --buckets and gives the arguments the layer that it describes. Throws
// Error{BadInput}, which names the file, for one that is damaged or no such file.
BucketFile read_bucket_file(Arguments& arguments);

// Returns the bytes of the file --save-buckets, for a layer with weights.
std::string bucket_file(const runtime::FullyConnected& layer, const Weights& weights,
                        const planner::PlannedLayer& planned);

}  // namespace tessera::tools
