#pragma once

#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime {

// Returns the weights of every group that FullyConnected::restore_weights would take, for a caller
// that needs them before it has a layer with this plan. Throws its errors.
std::vector<sparse::CheckedCsr<float>> weights_of(const partitioner::SavedWeights& saved,
                                                  const Problem& problem, const planner::Plan& plan,
                                                  const device::Machine& machine,
                                                  Executor& executor);

// Describes weights for a file; docs/bucket-format.md names the fields and lists. Throws the errors
// of the archive. Words, patterns and lengths of lists are not looked at: a layer that takes the
// weights does that.
void describe(io::Archive& archive, partitioner::SavedWeights& weights);

}  // namespace tessera::runtime
