#include <utility>

#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/ops/element.hpp"
#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"

namespace tessera::arrays {
namespace {

// Returns the array in another storage; row_sparse and csr convert to each other, too.
template <class T>
Array<T> in_storage(Array<T> array, Storage to) {
  if (storage_of(array) == to) return array;
  if (const auto* rows = std::get_if<RowSparse<T>>(&array); rows != nullptr && to == Storage::Csr)
    return to_csr(*rows);
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&array);
      csr != nullptr && to == Storage::RowSparse)
    return to_row_sparse(*csr);
  return cast_storage(array, to);
}

template <class T>
void write_to(Array<T>& out, Array<T> result) {
  check(out);
  internal::require_same_shape("result and out", shape_of(result), shape_of(out));
  out = in_storage(std::move(result), storage_of(out));
}

}  // namespace

template <class T>
void dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks, Array<T>& out) {
  // A product that would be sparse is asked for in the form of `out`.
  form.dense_result = form.dense_result || storage_of(out) == Storage::Dense;
  write_to(out, dot(a, b, form, fallbacks));
}

template <class T>
void combine(Binary op, const Array<T>& a, const Array<T>& b, Fallbacks& fallbacks, Array<T>& out) {
  write_to(out, combine(op, a, b, fallbacks));
}

template <class T>
void map(Unary function, const Array<T>& a, Fallbacks& fallbacks, Array<T>& out) {
  write_to(out, map(function, a, fallbacks));
}

#define TESSERA_INSTANTIATE_OUT(T)                                                        \
  template void dot(const Array<T>&, const Array<T>&, DotForm, Fallbacks&, Array<T>&);    \
  template void combine(Binary, const Array<T>&, const Array<T>&, Fallbacks&, Array<T>&); \
  template void map(Unary, const Array<T>&, Fallbacks&, Array<T>&);

TESSERA_INSTANTIATE_OUT(float)
TESSERA_INSTANTIATE_OUT(double)
TESSERA_INSTANTIATE_OUT(Half)
TESSERA_INSTANTIATE_OUT(BFloat16)

#undef TESSERA_INSTANTIATE_OUT

}  // namespace tessera::arrays
