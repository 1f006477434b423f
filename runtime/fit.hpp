#pragma once

#include <optional>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime {

// Returns a metaInfoBucketOversizeProportion, in whole hundredths, with which the planner finds a
// plan whose buckets hold these weights, or nothing if it finds none up to 1000. The search starts
// above the proportion in `options`, doubles its steps until a plan fits, and bisects to the
// smallest proportion from there on. Each trial plans and encodes with bucketConfidence 0, as for a
// caller who gives the proportion, so the same options with the result will do. Costs up to 34
// plans and encodings.
std::optional<double> oversize_that_fits(const Problem& problem, const device::Machine& machine,
                                         const planner::Options& options,
                                         const sparse::CheckedCsr<float>& weights);

}  // namespace tessera::runtime
