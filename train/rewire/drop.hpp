#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::train {

// Returns the k stored blocks whose sum of |values| is smallest, in row-major order. Of equal sums
// the lower place is taken first. Those that each row and column of blocks keeps by `least`
// (kept_by_neurons) are not among them, and fewer than k are returned if no others are left.
// Throws Error{InvalidArgument} for k outside [0, stored blocks] and a negative `least`, and
// Error{BadInput}, which names the matrix by `name` and the place, for a value that is NaN or
// infinite. O(values). Thread-safe.
std::vector<sparse::BlockAt> smallest_blocks(const sparse::Csr<float>& weights, std::int64_t k,
                                             std::string_view name = "weights",
                                             std::int64_t least = 0);

// Does the same for values that are finite and a k in that range, without the checks. `kept` are
// the flags of kept_by_neurons, or empty.
std::vector<sparse::BlockAt> smallest_others(const sparse::Csr<float>& weights, std::int64_t k,
                                             const std::vector<char>& kept);

// Returns a flag for each stored block: true for the `least` largest of its row and of its column
// of blocks, by the sum of |values|; of equal sums the higher place is kept first. Empty if `least`
// is 0. Throws Error{InvalidArgument} for a negative `least`. O(values).
std::vector<char> kept_by_neurons(const sparse::Csr<float>& weights, std::int64_t least);

}  // namespace tessera::train
