#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// Returns the sums of products over pairs of dimensions: dimension a_dims[i] of `a` is paired with
// b_dims[i] of `b`. The result has the other dimensions of `a` and then those of `b`, each in their
// order. An entry is stored wherever there was a product, even if the sum is zero. The result has
// rank 0 if all dimensions are contracted, and is the outer product if none is. Sums are taken in
// double in ascending order of the contracted index and rounded once, so the bits do not depend on
// the order of the buffers; sums of integers are exact or Error{LimitExceeded}. T is any type of
// ops/element.hpp.
// Throws Error{InvalidArgument} for lists of different lengths, a dimension that does not exist or
// is named twice (negative ones count from the end), and paired dimensions of different lengths;
// throws Error{LimitExceeded} if the contracted dimensions, or the other ones of a tensor, have
// more than 2^63 - 1 places together.
// O((nnz(a) + nnz(b)) * bits of an index / 8 + products * bits of an index / 8): all entries are
// sorted, whatever their order is, so no choice of dimensions is favoured. The scratch memory is 48
// bytes per entry. Example: a matrix product is contract(a, {1}, b, {0}).
template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims);

// Returns the same, computed by all threads of an executor. The bits are the same, and do not
// depend on the number of threads.
template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                      const CooTensor<T>& b, const std::vector<std::int64_t>& b_dims,
                      Executor& executor);

// Returns the same for a dense operand of any dimensions, as a dense array: the free dimensions of
// `a` and then those of `b`. The tensor becomes a CSR of its free and contracted places, the dense
// operand a matrix, and the fast product of both is taken, with the sums of gemm() in blas.hpp.
// Throws Error{LimitExceeded} if the contracted dimensions have 2^31 places or more together.
// O(nnz(a) * bits of an index / 8 + elements of b + nnz(a) * free places of b + places of the
// result).
template <class T>
DenseArray<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& a_dims,
                       const DenseArray<T>& b, const std::vector<std::int64_t>& b_dims,
                       Executor& executor);

// Returns the same for a dense operand that has the contracted dimensions only, row-major in the
// order of `dims`. Throws Error{InvalidArgument} if it has another size.
// O(nnz(a) * bits of an index / 8). Example: contract(a, {2}, x) is a tensor times a vector.
template <class T>
CooTensor<T> contract(const CooTensor<T>& a, const std::vector<std::int64_t>& dims,
                      std::span<const T> dense);

}  // namespace tessera::arrays
