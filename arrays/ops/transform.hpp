#pragma once

#include <type_traits>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/ops/operation.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// Element-wise operations on an array X in any storage: CooTensor, SlicedCsr, SlicedCsc or
// MappedArray, or a view of one, over any type of ops/element.hpp. Results have memory of their own
// and the storage of the first operand; the result of a MappedArray has the default mapping of its
// shape. The bits of a result do not depend on the number of threads. Operands may be read by any
// number of threads; an executor runs one loop at a time. An index needs at most 64 bits, the sum
// over the dimensions of the bits of the largest index, else Error{LimitExceeded} is thrown.
// In costs, n is the number of stored elements.

// Returns the operation of every element. Elements that are not stored have the same value in the
// result: operation(0) must be 0 for the storages of zeros, else Error{InvalidArgument} is thrown;
// a MappedArray gets operation(unspecified()) as its unspecified(). O(n).
template <class X>
X map(const Operation<typename X::Value>& operation, const X& x, Executor& executor);

// The elements that an operation in place changes.
enum class Reach {
  All,    // every element; if operation(0) is not 0, every place of the view becomes stored
  Stored  // the stored elements; the pattern stays the same
};

// Changes the elements of an array or view in place; all arrays that share its memory see the
// change. An error leaves the array unchanged. O(n) if operation(0) is 0 or `reach` is Stored, else
// O(elements) and the cost of storing them. Example: change({Binary::Multiply, 2.f}, view,
// executor) doubles the elements of a view.
template <class X>
void change(const Operation<typename X::Value>& operation, X& x, Executor& executor,
            Reach reach = Reach::All);

// Returns the array with elements of another type, each rounded once; the pattern stays the same.
// Throws Error{LimitExceeded} if an integer type cannot hold a value. O(n).
template <class U, class T>
CooTensor<U> cast(const CooTensor<T>& x, Executor& executor);
template <class U, class T>
SlicedCsr<U> cast(const SlicedCsr<T>& x, Executor& executor);
template <class U, class T>
SlicedCsc<U> cast(const SlicedCsc<T>& x, Executor& executor);
template <class U, class T>
MappedArray<U> cast(const MappedArray<T>& x, Executor& executor);

// Combines two arrays element by element. Their shapes must be the same, or one must broadcast to
// the other by NumPy's rule: missing leading dimensions and dimensions of length 1 are repeated.
// A product stores the places that both operands store, everything else those that either stores.
// An op whose value at two zeros is not zero, which is Divide, is Error{InvalidArgument} for
// storages of zeros. O(n log n / chunks), for a broadcast operand n counts the repeated elements.
template <class X>
X combine(Binary op, const X& a, const X& b, Executor& executor);

// Returns the same for operands of two types, in the type of the table in ops/element.hpp.
template <template <class> class S, Element A, Element B>
  requires(!std::same_as<A, B>)
S<Common<A, B>> combine(Binary op, const S<A>& a, const S<B>& b, Executor& executor) {
  using C = Common<A, B>;
  return combine(op, cast<C>(a, executor), cast<C>(b, executor), executor);
}

// Combines a sparse array with a dense one of the same shape, or one that broadcasts to it. The
// first function returns every element; the second computes stored places only and keeps the
// pattern, so elements that are not stored stay zero whatever the dense operand has there.
// O(elements) and O(n).
template <class X>
DenseArray<typename X::Value> combine(Binary op, const X& a, const DenseArray<typename X::Value>& b,
                                      Executor& executor);
template <class X>
X combine_stored(Binary op, const X& a, const DenseArray<typename X::Value>& b, Executor& executor);

}  // namespace tessera::arrays
