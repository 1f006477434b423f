#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host {

// Returns the k blocks whose gradient dQ * transpose(S) is largest among those that the pattern
// `taken` does not store (its values are not read), row by row; of equal ones the lower place. The
// dense gradient is computed in panels and never kept: memory is a panel and 2 * k places for each
// thread. The places are those of a search on a modelled machine (runtime::FullyConnected), unless
// two scores are equal but for rounding. They do not depend on the threads. `name` names the
// weights in messages. Throws Error{InvalidArgument} for operands of another shape than the
// pattern, for k outside 0 .. free places and for more than 2^32 blocks, and Error{BadInput}, which
// names the place, if the gradient of one of the best places is not finite. O(rows * cols * z).
std::vector<sparse::BlockAt> largest_gradients(const sparse::Csr<float>& taken, std::int64_t k,
                                               codelets::BlockScore score,
                                               const GradientOperands& operands, Executor& executor,
                                               std::string_view name = "weights");

}  // namespace tessera::host
