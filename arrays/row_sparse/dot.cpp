#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/arrays/internal/fast_product.hpp"
#include "tessera/arrays/row_sparse/internal/densify.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

// Return row r of the second operand: a row of a dense matrix, or a stored row and otherwise null.
template <class T>
const T* row_of(const DenseArray<T>& b, std::int64_t r) {
  return b.values.data() + r * b.shape[1];
}
template <class T>
const T* row_of(const RowSparse<T>& b, std::int64_t r) {
  const auto at = std::ranges::lower_bound(b.rows, r);
  if (at == b.rows.end() || *at != r) return nullptr;
  return b.values.data() + (at - b.rows.begin()) * b.shape[1];
}

template <class T>
void add_scaled(T factor, const T* from, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

template <class T>
DenseArray<T> dot_plain(const sparse::Csr<T>& a, const RowSparse<T>& b) {
  const std::int64_t n = b.shape[1];
  DenseArray<T> result{{a.rows, n}, {}};
  result.values.resize(std::size_t(internal::checked_elements(result.shape)));
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t k = a.row_begin[r]; k < a.row_begin[r + 1]; ++k)
      if (const T* from = row_of(b, a.col[k]))
        add_scaled(a.values[k], from, n, result.values.data() + r * n);
  return result;
}

template <class T>
DenseArray<T> dot_plain(const sparse::Csr<T>& a, const DenseArray<T>& b, Executor& executor) {
  const std::int64_t n = b.shape[1];
  DenseArray<T> result{{a.rows, n}, {}};
  result.values.resize(std::size_t(internal::checked_elements(result.shape)));
  const internal::RowsView<T> rows{
      a.rows, a.cols, a.row_begin.data(), a.row_begin.data() + 1, a.values.data(), a.col.data(), 0};
  internal::multiply_rows<T>(rows, {b.values.data(), b.shape[0], n, n, 1},
                             {result.values.data(), a.rows, n, n, 1}, T(1), T(0), executor);
  return result;
}

// Computes transpose(a) * b. The result has a row for each column of `a` that meets a row of `b`.
template <class T, class B>
RowSparse<T> dot_turned(const sparse::Csr<T>& a, const B& b) {
  const std::int64_t n = b.shape[1];
  constexpr std::int64_t kUnmet = -1;
  std::vector<std::int64_t> slot(std::size_t(a.cols), kUnmet);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t k = a.row_begin[r]; k < a.row_begin[r + 1] && row_of(b, r) != nullptr; ++k)
      slot[a.col[k]] = 0;
  RowSparse<T> result{{a.cols, n}, {}, {}};
  for (std::int64_t c = 0; c < a.cols; ++c)
    if (slot[c] != kUnmet) slot[c] = result.stored(), result.rows.push_back(c);
  result.values.resize(
      std::size_t(checked_mul(result.stored(), n, "values of a row-sparse product")));
  for (std::int64_t r = 0; r < a.rows; ++r)
    if (const T* from = row_of(b, r))
      for (std::int64_t k = a.row_begin[r]; k < a.row_begin[r + 1]; ++k)
        add_scaled(a.values[k], from, n, result.values.data() + slot[a.col[k]] * n);
  return result;
}

// Computes a * b. Every row of the result stores the columns that `b` stores in any row.
template <class T>
sparse::Csr<T> dense_by_csr(const DenseArray<T>& a, const sparse::Csr<T>& b) {
  sparse::Csr<T> result;
  result.rows = a.shape[0], result.cols = b.cols;
  std::vector<std::int32_t> met(b.col.begin(), b.col.end());
  std::ranges::sort(met);
  met.erase(std::unique(met.begin(), met.end()), met.end());
  std::vector<T> sums(std::size_t(b.cols));
  for (std::int64_t r = 0; r < result.rows; ++r) {
    std::ranges::fill(sums, T(0));
    for (std::int64_t y = 0; y < b.rows; ++y)
      for (std::int64_t k = b.row_begin[y]; k < b.row_begin[y + 1]; ++k)
        sums[b.col[k]] += row_of(a, r)[y] * b.values[k];
    for (const std::int32_t c : met) result.col.push_back(c), result.values.push_back(sums[c]);
    result.row_begin.push_back(result.blocks());
  }
  return result;
}

template <class T>
DenseArray<T> dense_by_csr_turned(const DenseArray<T>& a, const sparse::Csr<T>& b) {
  DenseArray<T> result{{a.shape[0], b.rows}, {}};
  for (std::int64_t r = 0; b.rows > 0 && r < a.shape[0]; ++r)
    for (std::int64_t y = 0; y < b.rows; ++y) {
      T sum = 0;
      for (std::int64_t k = b.row_begin[y]; k < b.row_begin[y + 1]; ++k)
        sum += row_of(a, r)[b.col[k]] * b.values[k];
      result.values.push_back(sum);
    }
  return result;
}

template <class T>
DenseArray<T> transposed(const DenseArray<T>& a) {
  const MatrixView<const T> view{a.values.data(), a.shape[0], a.shape[1], a.shape[1], 1};
  return to_array(view.transposed());
}

template <class T>
DenseArray<T> dot_dense(const DenseArray<T>& a, const DenseArray<T>& b, DotForm form) {
  if (form.transpose_a) return dot_dense(transposed(a), b, {false, form.transpose_b, true});
  if (form.transpose_b) return dot_dense(a, transposed(b), {});
  const std::int64_t n = b.shape[1];
  DenseArray<T> result{{a.shape[0], n}, {}};
  result.values.resize(std::size_t(internal::checked_elements(result.shape)));
  for (std::int64_t r = 0; !a.values.empty() && r < a.shape[0]; ++r)
    for (std::int64_t y = 0; y < b.shape[0]; ++y)
      add_scaled(row_of(a, r)[y], row_of(b, y), n, result.values.data() + r * n);
  return result;
}

template <class T>
Array<T> dot_csr(const sparse::Csr<T>& a, const Array<T>& b, DotForm form, Executor& executor) {
  const auto* dense = std::get_if<DenseArray<T>>(&b);
  const auto* rows = std::get_if<RowSparse<T>>(&b);
  if (!form.transpose_a)
    return dense != nullptr ? Array<T>(dot_plain(a, *dense, executor))
                            : Array<T>(dot_plain(a, *rows));
  RowSparse<T> result = dense != nullptr ? dot_turned(a, *dense) : dot_turned(a, *rows);
  if (form.dense_result) return to_dense(result);
  return result;
}

template <class T>
void require_product(const Array<T>& a, const Array<T>& b, DotForm form) {
  check(a), check(b);
  const std::vector<std::int64_t> left = shape_of(a), right = shape_of(b);
  const bool fits = left.size() == 2 && right.size() == 2 &&
                    left[form.transpose_a ? 0 : 1] == right[form.transpose_b ? 1 : 0];
  if (fits) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("dot: {}{} times {}{} is not possible; both must have two dimensions and "
                          "the inner ones the same length",
                          internal::shape_text(left), form.transpose_a ? " transposed" : "",
                          internal::shape_text(right), form.transpose_b ? " transposed" : ""));
}

std::string name_of(DotForm form) {
  return std::string("dot") + (form.transpose_a ? ", a transposed" : "") +
         (form.transpose_b ? ", b transposed" : "");
}

}  // namespace

namespace {

template <class T>
Array<T> dot_in_type(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks,
                     Executor& executor) {
  require_product(a, b, form);
  const Inferred inferred = infer_dot(storage_of(a), storage_of(b), form);
  if (inferred.falls_back) {
    const auto dense = internal::densify(name_of(form), a, b, fallbacks);
    return dot_dense(dense.a, dense.b, form);
  }
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&a)) return dot_csr(*csr, b, form, executor);
  const auto& dense = std::get<DenseArray<T>>(a);
  const auto* csr = std::get_if<sparse::Csr<T>>(&b);
  if (csr == nullptr) return dot_dense(dense, std::get<DenseArray<T>>(b), form);
  if (form.transpose_b) return dense_by_csr_turned(dense, *csr);
  Array<T> result = dense_by_csr(dense, *csr);
  return form.dense_result ? cast_storage(result, Storage::Dense) : result;
}

// The functions as_type return an array with elements of another type.
template <class U, class T>
std::vector<U> values_as(const std::vector<T>& values) {
  std::vector<U> result;
  result.reserve(values.size());
  for (const T value : values) result.push_back(cast_value<U>(value));
  return result;
}
template <class U, class T>
Array<U> as_type(const DenseArray<T>& a) {
  return DenseArray<U>{a.shape, values_as<U>(a.values)};
}
template <class U, class T>
Array<U> as_type(const RowSparse<T>& a) {
  return RowSparse<U>{a.shape, a.rows, values_as<U>(a.values)};
}
template <class U, class T>
Array<U> as_type(const sparse::Csr<T>& a) {
  return sparse::Csr<U>{a.rows, a.cols, a.block, a.row_begin, a.col, values_as<U>(a.values)};
}
template <class U, class T>
Array<U> as_type(const Array<T>& a) {
  return std::visit([](const auto& any) { return as_type<U>(any); }, a);
}

}  // namespace

template <class T>
Array<T> dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks,
             Executor& executor) {
  if constexpr (ShortElement<T>) {
    check(a), check(b);
    return as_type<T>(dot(as_type<float>(a), as_type<float>(b), form, fallbacks, executor));
  } else {
    return dot_in_type(a, b, form, fallbacks, executor);
  }
}

template <class T>
Array<T> dot(const Array<T>& a, const Array<T>& b, DotForm form, Fallbacks& fallbacks) {
  internal::Serial on_this_thread;
  return dot(a, b, form, fallbacks, on_this_thread);
}

#define TESSERA_INSTANTIATE_DOT(T)                                              \
  template Array<T> dot(const Array<T>&, const Array<T>&, DotForm, Fallbacks&); \
  template Array<T> dot(const Array<T>&, const Array<T>&, DotForm, Fallbacks&, Executor&);

TESSERA_INSTANTIATE_DOT(float)
TESSERA_INSTANTIATE_DOT(double)
TESSERA_INSTANTIATE_DOT(Half)
TESSERA_INSTANTIATE_DOT(BFloat16)

#undef TESSERA_INSTANTIATE_DOT

}  // namespace tessera::arrays
