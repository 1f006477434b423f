#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/arrays/internal/flat.hpp"
#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"

namespace tessera::arrays::internal {

// The three functions by which a storage takes part in all operations. An operation is written
// once, over these; the overloads are the only code that an operation needs in a storage.

// Changes stored values in place: calls change(run) for runs of neighbouring values, each stored
// value of the view once, from the threads of the executor.
template <class T>
using Change = std::function<void(std::span<T>)>;
template <class T>
void for_runs(CooTensor<T>& tensor, Executor& executor, const Change<T>& change);
template <class T>
void for_runs(SlicedCsr<T>& matrix, Executor& executor, const Change<T>& change);
template <class T>
void for_runs(SlicedCsc<T>& matrix, Executor& executor, const Change<T>& change);
template <class T>
void for_runs(MappedArray<T>& array, Executor& executor, const Change<T>& change);

// Stores these elements, row-major, in every place of the view. A zero is stored or removed as the
// storage does it in put().
template <class T>
void store_all(CooTensor<T>& tensor, const std::vector<T>& values);
template <class T>
void store_all(SlicedCsr<T>& matrix, const std::vector<T>& values);
template <class T>
void store_all(SlicedCsc<T>& matrix, const std::vector<T>& values);
template <class T>
void store_all(MappedArray<T>& array, const std::vector<T>& values);

// Returns the places of the values of the entries in the view, in storage order. They are valid
// until the next put.
template <class T>
std::vector<T*> value_places(CooTensor<T>& tensor);

// Returns the place of the value at an index, or null if nothing is stored there.
template <class T>
T* value_place(CooTensor<T>& tensor, std::span<const std::int64_t> index);

// Return the stored elements by ascending key.
template <class T>
Flat<T> flat_of(const CooTensor<T>& tensor, Executor& executor);
template <class T>
Flat<T> flat_of(const SlicedCsr<T>& matrix, Executor& executor);
template <class T>
Flat<T> flat_of(const SlicedCsc<T>& matrix, Executor& executor);
template <class T>
Flat<T> flat_of(const MappedArray<T>& array, Executor& executor);

// Return an array in the storage of `like` with these elements, all in memory of its own. Throw
// Error{InvalidArgument}, which names `what`, if the storage cannot hold `rest`.
template <class T>
CooTensor<T> stored_like(const CooTensor<T>& like, Flat<T> flat, const std::string& what,
                         Executor& executor);
template <class T>
SlicedCsr<T> stored_like(const SlicedCsr<T>& like, Flat<T> flat, const std::string& what,
                         Executor& executor);
template <class T>
SlicedCsc<T> stored_like(const SlicedCsc<T>& like, Flat<T> flat, const std::string& what,
                         Executor& executor);
template <class T>
MappedArray<T> stored_like(const MappedArray<T>& like, Flat<T> flat, const std::string& what,
                           Executor& executor);

// Returns a tensor of its own with these elements. Throws Error{InvalidArgument} if rest is not
// zero.
template <class T>
CooTensor<T> tensor_of(Flat<T> flat, const std::string& what, Executor& executor);

// Returns a view of all entries of the tensor in a shape that differs in dimensions of length 1
// only, or nothing if a view cannot have it: dimensions of the underlying tensor stay in their
// order, and those that a view added are left out or added anywhere.
template <class T>
std::optional<CooTensor<T>> with_ones(const CooTensor<T>& tensor,
                                      const std::vector<std::int64_t>& shape);

// Calls each(index) for all indices of a shape, row-major.
template <class Each>
void for_each_index(const std::vector<std::int64_t>& shape, Each&& each) {
  for (const std::int64_t length : shape)
    if (length == 0) return;
  std::vector<std::int64_t> index(shape.size());
  while (true) {
    each(std::span<const std::int64_t>(index));
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// Throws Error{InvalidArgument} "{what}: elements that are not stored would become {}; ...".
[[noreturn]] void refuse_rest(const std::string& what);

}  // namespace tessera::arrays::internal
