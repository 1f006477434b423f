#pragma once

#include <string>

#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/arrays/row_sparse/infer.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays::internal {

// Returns the bytes of the dense copy of an array, or 0 if it is dense already.
template <class T>
Bytes bytes_to_densify(const Array<T>& a) {
  if (storage_of(a) == Storage::Dense) return Bytes(0);
  return Bytes(checked_mul(checked_elements(shape_of(a)), sizeof(T), "bytes made dense"));
}

// Records a fallback and returns its operands as dense arrays.
template <class T>
DenseArray<T> densify(const std::string& name, const Array<T>& a, Fallbacks& fallbacks) {
  fallbacks.record(name + "(" + to_string(storage_of(a)) + ")", bytes_to_densify(a));
  return std::get<DenseArray<T>>(cast_storage(a, Storage::Dense));
}

template <class T>
struct DensePair {
  DenseArray<T> a, b;
};
template <class T>
DensePair<T> densify(const std::string& name, const Array<T>& a, const Array<T>& b,
                     Fallbacks& fallbacks) {
  const std::int64_t bytes =
      checked_add(bytes_to_densify(a).value, bytes_to_densify(b).value, "bytes made dense");
  fallbacks.record(name + "(" + to_string(storage_of(a)) + ", " + to_string(storage_of(b)) + ")",
                   Bytes(bytes));
  return {std::get<DenseArray<T>>(cast_storage(a, Storage::Dense)),
          std::get<DenseArray<T>>(cast_storage(b, Storage::Dense))};
}

}  // namespace tessera::arrays::internal
