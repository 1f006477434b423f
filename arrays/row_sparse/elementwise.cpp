#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tessera/arrays/row_sparse/internal/densify.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

template <class T>
T apply(Binary op, T a, T b) {
  switch (op) {
    case Binary::Add:
      return a + b;
    case Binary::Subtract:
      return a - b;
    case Binary::Multiply:
      return a * b;
    case Binary::Divide:
      break;
  }
  return a / b;
}

template <class T>
T sign(T v) {
  return std::isnan(v) ? v : T((v > 0) - (v < 0));
}

// Applies one of the functions with f(0) = 0, which are those up to ZerosLike.
template <class T>
T apply_keeping(Unary f, T v) {
  constexpr T kDegrees = T(180) / std::numbers::pi_v<T>;
  switch (f) {
    case Unary::Relu:
      return v < 0 ? T(0) : v;
    case Unary::Abs:
      return std::abs(v);
    case Unary::Sign:
      return sign(v);
    case Unary::Round:
      return std::round(v);
    case Unary::Rint:
      return std::nearbyint(v);
    case Unary::Ceil:
      return std::ceil(v);
    case Unary::Floor:
      return std::floor(v);
    case Unary::Trunc:
    case Unary::Fix:
      return std::trunc(v);
    case Unary::Square:
      return v * v;
    case Unary::Sqrt:
      return std::sqrt(v);
    case Unary::Cbrt:
      return std::cbrt(v);
    case Unary::Sin:
      return std::sin(v);
    case Unary::Tan:
      return std::tan(v);
    case Unary::Arcsin:
      return std::asin(v);
    case Unary::Arctan:
      return std::atan(v);
    case Unary::Sinh:
      return std::sinh(v);
    case Unary::Tanh:
      return std::tanh(v);
    case Unary::Arcsinh:
      return std::asinh(v);
    case Unary::Arctanh:
      return std::atanh(v);
    case Unary::Log1p:
      return std::log1p(v);
    case Unary::Expm1:
      return std::expm1(v);
    case Unary::Degrees:
      return v * kDegrees;
    case Unary::Radians:
      return v / kDegrees;
    case Unary::Negative:
      return -v;
    default:
      return T(0);
  }
}

template <class T>
T apply(Unary f, T v) {
  switch (f) {
    case Unary::Exp:
      return std::exp(v);
    case Unary::Log:
      return std::log(v);
    case Unary::Cos:
      return std::cos(v);
    case Unary::Cosh:
      return std::cosh(v);
    case Unary::Gamma:
      return std::tgamma(v);
    case Unary::Sigmoid:
      return T(1) / (T(1) + std::exp(-v));
    case Unary::Rsqrt:
      return T(1) / std::sqrt(v);
    case Unary::Arccos:
      return std::acos(v);
    default:
      return apply_keeping(f, v);
  }
}

template <class T>
std::vector<T>& stored_values(Array<T>& array) {
  return std::visit([](auto& any) -> std::vector<T>& { return any.values; }, array);
}

// Merges two ascending lists of places: calls both(i, j), left(i) or right(j) for each place.
template <class Index, class Both, class Left, class Right>
void merge(std::span<const Index> a, std::span<const Index> b, Both&& both, Left&& left,
           Right&& right) {
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i] < b[j]))
      left(i++);
    else if (i == a.size() || b[j] < a[i])
      right(j++);
    else
      both(i++, j++);
  }
}

template <class T>
void append_row(Binary op, std::span<const T> a, std::span<const T> b, std::vector<T>& to) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    to.push_back(apply(op, a.empty() ? T(0) : a[i], b.empty() ? T(0) : b[i]));
}

template <class T>
RowSparse<T> combine_rows(Binary op, const RowSparse<T>& a, const RowSparse<T>& b) {
  RowSparse<T> result{a.shape, {}, {}};
  const bool is_sum = op != Binary::Multiply;
  const auto put = [&](std::int64_t row, std::span<const T> left, std::span<const T> right) {
    result.rows.push_back(row);
    append_row(op, left, right, result.values);
  };
  merge<std::int64_t>(
      a.rows, b.rows, [&](std::size_t i, std::size_t j) { put(a.rows[i], a.row(i), b.row(j)); },
      [&](std::size_t i) {
        if (is_sum) put(a.rows[i], a.row(i), {});
      },
      [&](std::size_t j) {
        if (is_sum) put(b.rows[j], {}, b.row(j));
      });
  return result;
}

template <class T>
sparse::Csr<T> combine_csr(Binary op, const sparse::Csr<T>& a, const sparse::Csr<T>& b) {
  sparse::Csr<T> result;
  result.rows = a.rows, result.cols = a.cols;
  const bool is_sum = op != Binary::Multiply;
  const auto put = [&](std::int32_t col, T left, T right) {
    result.col.push_back(col);
    result.values.push_back(apply(op, left, right));
  };
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t i0 = a.row_begin[r], j0 = b.row_begin[r];
    const std::span cols_a(a.col.data() + i0, std::size_t(a.row_begin[r + 1] - i0));
    const std::span cols_b(b.col.data() + j0, std::size_t(b.row_begin[r + 1] - j0));
    const T *va = a.values.data() + i0, *vb = b.values.data() + j0;
    merge<std::int32_t>(
        cols_a, cols_b, [&](std::size_t i, std::size_t j) { put(cols_a[i], va[i], vb[j]); },
        [&](std::size_t i) {
          if (is_sum) put(cols_a[i], va[i], T(0));
        },
        [&](std::size_t j) {
          if (is_sum) put(cols_b[j], T(0), vb[j]);
        });
    result.row_begin.push_back(result.blocks());
  }
  return result;
}

template <class T>
DenseArray<T> combine_dense(Binary op, DenseArray<T> a, const DenseArray<T>& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i)
    a.values[i] = apply(op, a.values[i], b.values[i]);
  return a;
}

// Multiplies the stored rows of `sparse` by those of `dense`.
template <class T>
RowSparse<T> multiply_rows(RowSparse<T> sparse, const DenseArray<T>& dense) {
  const std::int64_t size = sparse.row_size();
  for (std::int64_t i = 0; i < sparse.stored(); ++i)
    for (std::int64_t k = 0; k < size; ++k)
      sparse.values[i * size + k] *= dense.values[sparse.rows[i] * size + k];
  return sparse;
}

template <class T>
DenseArray<T> as_dense(const Array<T>& a) {
  return std::get<DenseArray<T>>(cast_storage(a, Storage::Dense));
}

}  // namespace

template <class T>
Array<T> combine(Binary op, const Array<T>& a, const Array<T>& b, Fallbacks& fallbacks) {
  check(a), check(b);
  internal::require_same_shape(to_string(op), shape_of(a), shape_of(b));
  const Inferred inferred = infer_binary(op, storage_of(a), storage_of(b));
  if (inferred.falls_back) {
    auto dense = internal::densify(to_string(op), a, b, fallbacks);
    return combine_dense(op, std::move(dense.a), dense.b);
  }
  const auto *rows_a = std::get_if<RowSparse<T>>(&a), *rows_b = std::get_if<RowSparse<T>>(&b);
  if (inferred.result == Storage::Dense) return combine_dense(op, as_dense(a), as_dense(b));
  if (inferred.result == Storage::Csr)
    return combine_csr(op, std::get<sparse::Csr<T>>(a), std::get<sparse::Csr<T>>(b));
  if (rows_a != nullptr && rows_b != nullptr) return combine_rows(op, *rows_a, *rows_b);
  if (rows_a != nullptr) return multiply_rows(*rows_a, std::get<DenseArray<T>>(b));
  return multiply_rows(*rows_b, std::get<DenseArray<T>>(a));
}

template <class T>
Array<T> combine(Binary op, const Array<T>& a, T scalar, Fallbacks& fallbacks) {
  check(a);
  Array<T> result = infer_scalar(op, storage_of(a)).falls_back
                        ? internal::densify(to_string(op) + " scalar", a, fallbacks)
                        : a;
  for (T& v : stored_values(result)) v = apply(op, v, scalar);
  return result;
}

template <class T>
Array<T> map(Unary function, const Array<T>& a, Fallbacks& fallbacks) {
  check(a);
  Array<T> result = infer_unary(function, storage_of(a)).falls_back
                        ? internal::densify(to_string(function), a, fallbacks)
                        : a;
  for (T& v : stored_values(result)) v = apply(function, v);
  return result;
}

#define TESSERA_INSTANTIATE_ELEMENTWISE(T)                                         \
  template Array<T> combine(Binary, const Array<T>&, const Array<T>&, Fallbacks&); \
  template Array<T> combine(Binary, const Array<T>&, T, Fallbacks&);               \
  template Array<T> map(Unary, const Array<T>&, Fallbacks&);

TESSERA_INSTANTIATE_ELEMENTWISE(float)
TESSERA_INSTANTIATE_ELEMENTWISE(double)

#undef TESSERA_INSTANTIATE_ELEMENTWISE

}  // namespace tessera::arrays
