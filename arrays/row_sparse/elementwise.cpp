#include <algorithm>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/row_sparse/internal/densify.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

template <class T>
std::vector<T>& stored_values(Array<T>& array) {
  return std::visit([](auto& any) -> std::vector<T>& { return any.values; }, array);
}

template <class T>
void run_over(const Operation<T>& operation, std::vector<T>& values) {
  operation.run(values, values.data());
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

// Appends `from` to a list, or `count` zeros if it is empty.
template <class T>
void append(std::span<const T> from, std::size_t count, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
  if (from.empty()) to.insert(to.end(), count, T(0));
}

template <class T>
RowSparse<T> combine_rows(Binary op, const RowSparse<T>& a, const RowSparse<T>& b) {
  RowSparse<T> result{a.shape, {}, {}};
  const bool is_sum = op != Binary::Multiply;
  std::vector<T> right_values;
  const auto put = [&](std::int64_t row, std::span<const T> left, std::span<const T> right) {
    result.rows.push_back(row);
    append(left, right.size(), result.values);
    append(right, left.size(), right_values);
  };
  merge<std::int64_t>(
      a.rows, b.rows, [&](std::size_t i, std::size_t j) { put(a.rows[i], a.row(i), b.row(j)); },
      [&](std::size_t i) {
        if (is_sum) put(a.rows[i], a.row(i), {});
      },
      [&](std::size_t j) {
        if (is_sum) put(b.rows[j], {}, b.row(j));
      });
  run<T>(op, result.values, right_values, result.values.data());
  return result;
}

template <class T>
sparse::Csr<T> combine_csr(Binary op, const sparse::Csr<T>& a, const sparse::Csr<T>& b) {
  sparse::Csr<T> result;
  result.rows = a.rows, result.cols = a.cols;
  const bool is_sum = op != Binary::Multiply;
  std::vector<T> right_values;
  const auto put = [&](std::int32_t col, T left, T right) {
    result.col.push_back(col);
    result.values.push_back(left);
    right_values.push_back(right);
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
  run<T>(op, result.values, right_values, result.values.data());
  return result;
}

template <class T>
DenseArray<T> combine_dense(Binary op, DenseArray<T> a, const DenseArray<T>& b) {
  run<T>(op, a.values, b.values, a.values.data());
  return a;
}

// Multiplies the stored rows of `sparse` by those of `dense`.
template <class T>
RowSparse<T> multiply_rows(RowSparse<T> sparse, const DenseArray<T>& dense) {
  const auto size = static_cast<std::size_t>(sparse.row_size());
  for (std::int64_t i = 0; i < sparse.stored(); ++i) {
    const std::span<const T> from(dense.values.data() + std::size_t(sparse.rows[i]) * size, size);
    run<T>(Binary::Multiply, sparse.row(i), from, sparse.row(i).data());
  }
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
  run_over(Operation<T>(op, scalar), stored_values(result));
  return result;
}

template <class T>
Array<T> map(Unary function, const Array<T>& a, Fallbacks& fallbacks) {
  check(a);
  const Operation<T> operation(function);
  Array<T> result = infer_unary(function, storage_of(a)).falls_back
                        ? internal::densify(to_string(function), a, fallbacks)
                        : a;
  run_over(operation, stored_values(result));
  return result;
}

#define TESSERA_INSTANTIATE_ELEMENTWISE(T)                                         \
  template Array<T> combine(Binary, const Array<T>&, const Array<T>&, Fallbacks&); \
  template Array<T> combine(Binary, const Array<T>&, T, Fallbacks&);               \
  template Array<T> map(Unary, const Array<T>&, Fallbacks&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_ELEMENTWISE)

#undef TESSERA_INSTANTIATE_ELEMENTWISE

}  // namespace tessera::arrays
