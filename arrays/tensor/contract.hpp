#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"

namespace tessera::arrays {

// Sums of products over pairs of dimensions: dimension a_dims[i] of `a` runs with b_dims[i] of `b`.
// The result has the other dimensions of `a` and then those of `b`, each in their order; an entry
// is stored where any product was, also when the sum is zero. All dimensions contracted gives rank
// 0, none the outer product. Sums are taken in double in ascending order of the contracted index
// and rounded once, so the bits do not depend on how the buffers are sorted. T is float or double.
// Error{InvalidArgument} for lists of different lengths, a dimension that is not there or is named
// twice (negative ones count from the end), or lengths that differ; Error{LimitExceeded} when the
// contracted or the other dimensions of one tensor have more than 2^63 - 1 places together.
// O((nnz(a) + nnz(b)) * bits of an index / 8 + products * bits of an index / 8): all entries are
// sorted whatever order they lie in, so no choice of dimensions is favoured. 48 bytes an entry
// meanwhile. Example: a matrix product is contract(a, {1}, b, {0}).
template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims);

// The same with a dense operand over the contracted dimensions alone, row-major in the order of
// `dims`; another size is Error{InvalidArgument}.
// O(nnz(a) * bits of an index / 8). Example: contract(a, {2}, x) is a tensor times a vector.
template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& dims,
                      std::span<const T> dense);

}  // namespace tessera::arrays
