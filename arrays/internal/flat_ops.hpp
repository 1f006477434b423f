#pragma once

#include <string>

#include "tessera/arrays/internal/flat.hpp"
#include "tessera/arrays/ops/operation.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"

namespace tessera::arrays::internal {

// Operations on flat arrays, from which those on all storages are made.

// Returns the array with fields in another order, sorted by its keys.
template <class T>
Flat<T> permuted(Flat<T> flat, std::span<const std::int64_t> order, Executor& executor);

// Returns the array repeated to `shape`. Throws Error{InvalidArgument} if it does not broadcast.
template <class T>
Flat<T> repeated(Flat<T> flat, const std::vector<std::int64_t>& shape, Executor& executor);

// Returns the elements in row-major order in another shape of as many elements.
template <class T>
Flat<T> reshaped(Flat<T> flat, std::vector<std::int64_t> shape, Executor& executor);

// Combines two arrays of one shape.
template <class T>
Flat<T> merged(Binary op, const Flat<T>& a, const Flat<T>& b, Executor& executor);

// Return every element row-major, and the elements other than zero.
template <class T>
std::vector<T> dense_values(const Flat<T>& flat, Executor& executor);
template <class T>
Flat<T> from_dense(const DenseArray<T>& array, Executor& executor);

// Returns the shape to which two shapes broadcast. Throws Error{InvalidArgument} if there is none.
std::vector<std::int64_t> common_shape(const std::string& what, const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b);

// The row-major position of keys, with strides of 0 along repeated dimensions.
class Positions {
 public:
  // Finds places of `fields` in a dense array of `shape`, which broadcasts to the shape of
  // `fields`.
  Positions(const Fields& fields, const std::vector<std::int64_t>& shape);

  std::int64_t operator()(std::uint64_t key) const {
    std::int64_t at = 0;
    for (const Part& part : parts_)
      at += static_cast<std::int64_t>((key >> part.shift) & part.mask) * part.stride;
    return at;
  }

 private:
  struct Part {
    int shift;
    std::uint64_t mask;
    std::int64_t stride;
  };
  std::vector<Part> parts_;
};

}  // namespace tessera::arrays::internal
