#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/ops/element.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// Accumulation over an array X in any storage (CooTensor, SlicedCsr, SlicedCsc, MappedArray) or a
// view of one: many elements give one. Elements that are not stored take part with their value,
// which is zero or unspecified(). The bits of a result do not depend on the number of threads or on
// the order of the buffers. In costs, n is the number of stored elements; a MappedArray whose
// unspecified() is not zero counts all elements.

// The functions that accumulate. Norm1, Norm2 and NormMax are the sum of magnitudes, the square
// root of the sum of squares (without overflow), and the largest magnitude. Sums are taken in
// double, of integers in 128 bits. A NaN among the elements gives NaN.
enum class Fold { Sum, Mean, Min, Max, Norm1, Norm2, NormMax };

// Returns the name in lower case, for example "sum" or "norm_max".
std::string to_string(Fold fold);

// Returns the elements accumulated along `dims`; the other dimensions remain in their order. Places
// are stored whose elements include a stored one. Throws Error{InvalidArgument} for a dimension
// that does not exist or is named twice (negative ones count from the end), for Mean and Norm2 of
// integers, which are no integers, and for Mean, Min, Max and NormMax over a dimension of length 0;
// throws Error{LimitExceeded} for an integer sum that does not fit 64 bits.
// O(n), and if the result has more places than n / 2 a sort by those.
// Example: fold(Fold::Sum, x, {0, 2}, executor) of a 4 x 5 x 6 tensor has 5 elements.
template <class X>
CooTensor<SumOf<typename X::Value>> fold(Fold fold, const X& x,
                                         const std::vector<std::int64_t>& dims, Executor& executor);

// Returns all elements accumulated. O(n).
template <class X>
SumOf<typename X::Value> fold_all(Fold fold, const X& x, Executor& executor);

// The functions that choose an element: the largest, the smallest, and the one of largest
// magnitude.
enum class Pick { Max, Min, AbsMax };

// Returns the index along dimension `dim` of the chosen element for each place of the other
// dimensions. The smallest index wins a tie; a NaN is chosen only if all elements are NaN. A place
// is stored if its elements include a stored one, and the index of the others is 0. Throws
// Error{InvalidArgument} if the dimension does not exist or has length 0. O(n), and a sort.
template <class X>
CooTensor<std::int64_t> pick(Pick pick, const X& x, std::int64_t dim, Executor& executor);

// Returns the row-major position of the chosen element of all, or nothing if there is no element.
// O(n).
template <class X>
std::optional<std::int64_t> pick_all(Pick pick, const X& x, Executor& executor);

}  // namespace tessera::arrays
