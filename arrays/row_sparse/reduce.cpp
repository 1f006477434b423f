#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/norm.hpp"
#include "tessera/arrays/row_sparse/internal/densify.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

struct Sums {
  std::vector<double> of;  // [result elements]
  std::int64_t terms = 0;  // number of elements in each sum
  std::vector<std::int64_t> shape, kept;
};

Sums empty_sums(std::int64_t rows, std::int64_t cols, std::optional<std::int64_t> axis) {
  if (!axis) return {std::vector<double>(1), rows * cols, {1}, {1, 1}};
  if (*axis == 0) return {std::vector<double>(std::size_t(cols)), rows, {cols}, {1, cols}};
  if (*axis == 1) return {std::vector<double>(std::size_t(rows)), cols, {rows}, {rows, 1}};
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("sum: axis {} of a matrix; choose 0, 1 or none", *axis));
}

std::size_t place(std::int64_t r, std::int64_t c, std::optional<std::int64_t> axis) {
  return std::size_t(!axis ? 0 : *axis == 0 ? c : r);
}

template <class T>
Sums sums_of(const sparse::Csr<T>& a, std::optional<std::int64_t> axis) {
  Sums sums = empty_sums(a.rows, a.cols, axis);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t k = a.row_begin[r]; k < a.row_begin[r + 1]; ++k)
      sums.of[place(r, a.col[k], axis)] += cast_value<double>(a.values[k]);
  return sums;
}

template <class T>
Sums sums_of(const DenseArray<T>& a, std::optional<std::int64_t> axis) {
  if (a.shape.size() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("sum: an array of {} is no matrix", internal::shape_text(a.shape)));
  const std::int64_t rows = a.shape[0], cols = a.shape[1];
  Sums sums = empty_sums(rows, cols, axis);
  for (std::int64_t r = 0; cols > 0 && r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      sums.of[place(r, c, axis)] += cast_value<double>(a.values[r * cols + c]);
  return sums;
}

[[noreturn]] void refuse_rows(std::int64_t row, std::int64_t rows) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("row {} is asked of a matrix of {} rows, counted from 0", row, rows));
}

template <class T>
void append_rows(const sparse::Csr<T>& from, std::int64_t begin, std::int64_t end,
                 sparse::Csr<T>& to) {
  const std::int64_t first = from.row_begin[begin], last = from.row_begin[end];
  const std::int64_t shift = to.blocks() - first;
  to.col.insert(to.col.end(), from.col.begin() + first, from.col.begin() + last);
  to.values.insert(to.values.end(), from.values.begin() + first, from.values.begin() + last);
  for (std::int64_t r = begin; r < end; ++r) to.row_begin.push_back(from.row_begin[r + 1] + shift);
  to.rows += end - begin;
}

template <class T>
T sum_of_squares(std::span<const T> row) {
  double sum = 0;
  for (const T v : row) sum += cast_value<double>(v) * cast_value<double>(v);
  return cast_value<T>(sum);
}

}  // namespace

template <class T>
DenseArray<T> sum(const Array<T>& a, SumForm form, Fallbacks& fallbacks) {
  check(a);
  const auto* csr = std::get_if<sparse::Csr<T>>(&a);
  const auto* dense = std::get_if<DenseArray<T>>(&a);
  const std::string name = form.mean ? "mean" : "sum";
  const Inferred inferred = infer_sum(storage_of(a), form.keep_dimensions);
  Sums sums = inferred.falls_back ? sums_of(internal::densify(name, a, fallbacks), form.axis)
              : csr != nullptr    ? sums_of(*csr, form.axis)
                                  : sums_of(*dense, form.axis);
  DenseArray<T> result{form.keep_dimensions ? sums.kept : sums.shape, {}};
  for (const double s : sums.of)
    result.values.push_back(cast_value<T>(form.mean ? s / double(sums.terms) : s));
  return result;
}

template <class T>
T norm(const Array<T>& a) {
  check(a);
  return cast_value<T>(std::visit(
      [](const auto& any) {
        return internal::euclidean_norm([&](auto&& see) {
          for (const T v : any.values) see(cast_value<double>(v));
        });
      },
      a));
}

template <class T>
DenseArray<T> square_sum(const RowSparse<T>& a) {
  const RowSparse<T> kept = square_sum_kept(a);
  DenseArray<T> result = to_dense(kept);
  result.shape.pop_back();
  return result;
}

template <class T>
RowSparse<T> square_sum_kept(const RowSparse<T>& a) {
  check(a);
  RowSparse<T> result{{a.shape[0], 1}, a.rows, {}};
  for (std::int64_t i = 0; i < a.stored(); ++i)
    result.values.push_back(sum_of_squares<T>(a.row(i)));
  return result;
}

template <class T>
sparse::Csr<T> slice_rows(const sparse::Csr<T>& a, std::int64_t begin, std::int64_t end) {
  internal::require_elements(a);
  if (begin < 0 || begin > a.rows) refuse_rows(begin, a.rows);
  if (end < begin || end > a.rows) refuse_rows(end, a.rows);
  sparse::Csr<T> result;
  result.cols = a.cols;
  append_rows(a, begin, end, result);
  return result;
}

template <class T>
sparse::Csr<T> take_rows(const sparse::Csr<T>& a, std::span<const std::int64_t> rows) {
  internal::require_elements(a);
  sparse::Csr<T> result;
  result.cols = a.cols;
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= a.rows) refuse_rows(row, a.rows);
    append_rows(a, row, row + 1, result);
  }
  return result;
}

template <class T>
sparse::Csr<T> concat_rows(std::span<const sparse::Csr<T>> parts) {
  sparse::Csr<T> result;
  for (const sparse::Csr<T>& part : parts) {
    internal::require_elements(part);
    internal::require_same_shape("concat_rows, widths", {parts[0].cols}, {part.cols});
    result.cols = part.cols;
    append_rows(part, 0, part.rows, result);
  }
  return result;
}

template <class T>
sparse::Csr<T> clip(const sparse::Csr<T>& a, T least, T most) {
  internal::require_elements(a);
  const double lower = cast_value<double>(least), upper = cast_value<double>(most);
  if (!(lower <= 0 && upper >= 0))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("clip: [{}, {}] does not hold zero, so what is not stored would change; "
                    "cast to dense first",
                    lower, upper));
  sparse::Csr<T> result = a;
  Operation<T>::clip(least, most).run(result.values, result.values.data());
  return result;
}

#define TESSERA_INSTANTIATE_REDUCE(T)                                                      \
  template DenseArray<T> sum(const Array<T>&, SumForm, Fallbacks&);                        \
  template T norm(const Array<T>&);                                                        \
  template DenseArray<T> square_sum(const RowSparse<T>&);                                  \
  template RowSparse<T> square_sum_kept(const RowSparse<T>&);                              \
  template sparse::Csr<T> slice_rows(const sparse::Csr<T>&, std::int64_t, std::int64_t);   \
  template sparse::Csr<T> take_rows(const sparse::Csr<T>&, std::span<const std::int64_t>); \
  template sparse::Csr<T> concat_rows(std::span<const sparse::Csr<T>>);                    \
  template sparse::Csr<T> clip(const sparse::Csr<T>&, T, T);

TESSERA_INSTANTIATE_REDUCE(float)
TESSERA_INSTANTIATE_REDUCE(double)
TESSERA_INSTANTIATE_REDUCE(Half)
TESSERA_INSTANTIATE_REDUCE(BFloat16)

#undef TESSERA_INSTANTIATE_REDUCE

}  // namespace tessera::arrays
