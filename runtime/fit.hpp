#pragma once

#include <optional>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime {

// The least metaInfoBucketOversizeProportion, in hundredths, with which the planner finds a plan
// whose buckets hold these weights; none when none up to 1000 does. bucketConfidence counts as 0:
// the proportion alone must do, as for a caller who gives it. Found by planning and encoding, so
// the same options with that proportion will do. Up to 34 plans and encodings.
std::optional<double> oversize_that_fits(const Problem& problem, const device::Machine& machine,
                                         const planner::Options& options,
                                         const sparse::CheckedCsr<float>& weights);

}  // namespace tessera::runtime
