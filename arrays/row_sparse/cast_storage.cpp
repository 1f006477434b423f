#include "tessera/arrays/row_sparse/cast_storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::arrays {
namespace {

using internal::shape_text;

template <class T>
DenseArray<T> dense_from(const Array<T>& array) {
  if (const auto* rows = std::get_if<RowSparse<T>>(&array)) return to_dense(*rows);
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&array)) {
    Matrix<T> dense = to_dense(*csr);
    return {{csr->rows, csr->cols}, {dense.elements().begin(), dense.elements().end()}};
  }
  return std::get<DenseArray<T>>(array);
}

template <class T>
sparse::Csr<T> csr_from(const DenseArray<T>& array) {
  if (array.shape.size() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("cast_storage: an array of {} cannot be csr; only two dimensions can",
                            shape_text(array.shape)));
  const MatrixView<const T> view{array.values.data(), array.shape[0], array.shape[1],
                                 array.shape[1], 1};
  return sparse::from_dense(view, {1, 1});
}

[[noreturn]] void refuse_cast(Storage from, Storage to) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("cast_storage: {} cannot become {}; cast it to dense first, or use the "
                          "conversion of that name",
                          to_string(from), to_string(to)));
}

template <class Index>
std::int64_t whole_row(Index row, std::size_t at) {
  if constexpr (std::is_floating_point_v<Index>) {
    // Beyond 2^53 not every whole number is a double.
    if (!(std::abs(double(row)) <= 0x1p53) || std::trunc(row) != row)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("retain: rows[{}] is {}; rows are whole numbers", at, row));
  }
  return static_cast<std::int64_t>(row);
}

template <class Index>
std::vector<std::int64_t> rows_asked(std::span<const Index> rows, std::int64_t count) {
  std::vector<std::int64_t> asked;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = whole_row(rows[i], i);
    if (row < 0 || row >= count)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("retain: rows[{}] is {}; the array has {} rows, counted from 0", i,
                              row, count));
    if (i > 0 && row <= asked.back())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("retain: rows[{}] is {} and stands after {}; they must ascend", i,
                              row, asked.back()));
    asked.push_back(row);
  }
  return asked;
}

}  // namespace

template <class T>
DenseArray<T> to_dense(const RowSparse<T>& array) {
  check(array);
  DenseArray<T> dense{array.shape, {}};
  dense.values.resize(static_cast<std::size_t>(internal::checked_elements(array.shape)));
  for (std::int64_t i = 0; i < array.stored(); ++i)
    std::ranges::copy(array.row(i), dense.values.begin() + array.rows[i] * array.row_size());
  return dense;
}

template <class T>
RowSparse<T> to_row_sparse(const DenseArray<T>& array) {
  check(array);
  RowSparse<T> result = row_sparse_zeros<T>(array.shape);
  const std::int64_t size = result.row_size();
  // Rows without elements are never stored, and there may be 2^63 - 1 of them.
  for (std::int64_t r = 0; size > 0 && r < array.shape[0]; ++r) {
    const auto first = array.values.begin() + r * size, last = first + size;
    if (std::all_of(first, last, [](T v) { return v == T(0); })) continue;
    result.rows.push_back(r);
    result.values.insert(result.values.end(), first, last);
  }
  return result;
}

template <class T>
sparse::Csr<T> to_csr(const RowSparse<T>& array) {
  check(array);
  if (array.shape.size() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a row-sparse array of {} is no matrix; it must have two dimensions",
                            shape_text(array.shape)));
  checked_int32(array.shape[0], "rows of a csr");
  const std::int32_t cols = checked_int32(array.shape[1], "columns of a csr");
  sparse::Csr<T> csr{array.shape[0], array.shape[1], {}, {}, {}, array.values};
  csr.row_begin.assign(static_cast<std::size_t>(csr.rows) + 1, 0);
  for (const std::int64_t row : array.rows) csr.row_begin[std::size_t(row) + 1] = cols;
  for (std::size_t r = 1; r < csr.row_begin.size(); ++r) csr.row_begin[r] += csr.row_begin[r - 1];
  csr.col.reserve(array.values.size());
  for (std::int64_t i = 0; i < array.stored(); ++i)
    for (std::int32_t c = 0; c < cols; ++c) csr.col.push_back(c);
  return csr;
}

template <class T>
RowSparse<T> to_row_sparse(const sparse::Csr<T>& matrix) {
  internal::require_elements(matrix);
  RowSparse<T> result = row_sparse_zeros<T>({matrix.rows, matrix.cols});
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    if (matrix.row_begin[r] != matrix.row_begin[r + 1]) result.rows.push_back(r);
  result.values.resize(static_cast<std::size_t>(
      checked_mul(result.stored(), matrix.cols, "values of a row-sparse array")));
  for (std::int64_t i = 0; i < result.stored(); ++i) {
    const std::span<T> to = result.row(i);
    const std::int64_t r = result.rows[i];
    for (std::int64_t k = matrix.row_begin[r]; k < matrix.row_begin[r + 1]; ++k)
      to[matrix.col[k]] = matrix.values[k];
  }
  return result;
}

template <class T>
Array<T> cast_storage(const Array<T>& array, Storage to) {
  check(array);
  const Storage from = storage_of(array);
  if (from == to) return array;
  if (to == Storage::Dense) return dense_from(array);
  const auto* dense = std::get_if<DenseArray<T>>(&array);
  if (dense == nullptr) refuse_cast(from, to);
  if (to == Storage::Csr) return csr_from(*dense);
  return to_row_sparse(*dense);
}

template <class T>
bool copy_to(const Array<T>& source, Array<T>& destination) {
  if (&source == &destination) return false;
  internal::require_same_shape("copy_to", shape_of(source), shape_of(destination));
  destination = cast_storage(source, storage_of(destination));
  return true;
}

template <class T>
void fill(Array<T>& array, T value) {
  check(array);
  if (auto* dense = std::get_if<DenseArray<T>>(&array)) {
    std::ranges::fill(dense->values, value);
    return;
  }
  auto* rows = std::get_if<RowSparse<T>>(&array);
  if (rows == nullptr)
    throw Error(ErrorCode::InvalidArgument,
                "fill: a csr cannot take one value everywhere; assign a dense array or a csr");
  RowSparse<T> filled{rows->shape, {}, {}};
  if (value != T(0) && filled.row_size() > 0) {
    for (std::int64_t r = 0; r < rows->shape[0]; ++r) filled.rows.push_back(r);
    filled.values.assign(static_cast<std::size_t>(internal::checked_elements(filled.shape)), value);
  }
  *rows = std::move(filled);
}

template <class T, class Index>
RowSparse<T> retain(const RowSparse<T>& array, std::span<const Index> rows) {
  check(array);
  RowSparse<T> result{array.shape, rows_asked(rows, array.shape[0]), {}};
  result.values.resize(static_cast<std::size_t>(
      checked_mul(result.stored(), array.row_size(), "values of a row-sparse array")));
  std::size_t k = 0;
  for (std::int64_t i = 0; i < result.stored(); ++i) {
    while (k < array.rows.size() && array.rows[k] < result.rows[i]) ++k;
    if (k < array.rows.size() && array.rows[k] == result.rows[i])
      std::ranges::copy(array.row(std::int64_t(k)), result.row(i).begin());
  }
  return result;
}

#define TESSERA_INSTANTIATE_CASTS(T)                                                \
  template Array<T> cast_storage(const Array<T>&, Storage);                         \
  template DenseArray<T> to_dense(const RowSparse<T>&);                             \
  template RowSparse<T> to_row_sparse(const DenseArray<T>&);                        \
  template RowSparse<T> to_row_sparse(const sparse::Csr<T>&);                       \
  template sparse::Csr<T> to_csr(const RowSparse<T>&);                              \
  template bool copy_to(const Array<T>&, Array<T>&);                                \
  template void fill(Array<T>&, T);                                                 \
  template RowSparse<T> retain(const RowSparse<T>&, std::span<const std::int32_t>); \
  template RowSparse<T> retain(const RowSparse<T>&, std::span<const std::int64_t>); \
  template RowSparse<T> retain(const RowSparse<T>&, std::span<const float>);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_CASTS)

#undef TESSERA_INSTANTIATE_CASTS

}  // namespace tessera::arrays
