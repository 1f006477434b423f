#pragma once

#include <cstdint>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// Other shapes of the elements of an array X: CooTensor, SlicedCsr, SlicedCsc or MappedArray of
// zeros, or a view of one. The result is a tensor. It shares the memory of X if X is a tensor and
// the elements need not move; otherwise it has memory of its own. A SlicedCsr is transposed without
// a copy by SlicedCsc(matrix), and the axes of a MappedArray by swapped(). In costs, n is the
// number of stored elements.

// Returns the array with its dimensions in another order: dimension i of the result is dimension
// order[i] of `x`. Throws Error{InvalidArgument} unless each dimension is named once. Nothing moves
// if only dimensions of length 1 change places. Else a counting sort by the least number of leading
// dimensions that brings the entries into order, and O(n). Example: order 2 0 1 of a 4 x 5 x 6
// tensor is 6 x 4 x 5 and needs a sort by one dimension.
template <class X>
CooTensor<typename X::Value> permute(const X& x, const std::vector<std::int64_t>& order,
                                     Executor& executor);

// Returns the elements in their row-major order in another shape. One length may be -1, and is then
// computed. Throws Error{InvalidArgument} if the shapes have different numbers of elements. Nothing
// moves if dimensions of length 1 are added or removed in front of a dimension or at the end of a
// tensor that is no view. O(n), without a sort.
template <class X>
CooTensor<typename X::Value> reshape(const X& x, std::vector<std::int64_t> shape,
                                     Executor& executor);

// Returns the array repeated along dimensions of length 1, and along new leading dimensions, to
// `shape`. Throws Error{InvalidArgument} if another dimension differs. O(n * repeats), and a sort.
template <class X>
CooTensor<typename X::Value> broadcast(const X& x, const std::vector<std::int64_t>& shape,
                                       Executor& executor);

// Returns the elements of a dense array that are not zero (-0 is zero, NaN is not). O(elements).
template <class T>
CooTensor<T> to_tensor(const DenseArray<T>& array, Executor& executor);

// Returns a tensor of entries in any order, in which entries of one place are added up in the order
// in which they are given. indices is [nnz][rank]. Throws Error{BadInput} for wrong lengths and an
// index outside the shape, and Error{LimitExceeded} if a sum of integers does not fit.
// O(nnz * bits of an index / 8).
template <class T>
CooTensor<T> sum_duplicates(const std::vector<std::int64_t>& shape,
                            const std::vector<std::int32_t>& indices, const std::vector<T>& values,
                            Executor& executor);

// Returns every element, row-major. Throws Error{LimitExceeded} if their number does not fit in 64
// bits. O(elements).
template <class X>
DenseArray<typename X::Value> to_dense_array(const X& x, Executor& executor);

}  // namespace tessera::arrays
