#include "tessera/arrays/row_sparse/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

using internal::checked_elements;
using internal::shape_text;

[[noreturn]] void bad_input(const std::string& message) {
  throw Error(ErrorCode::BadInput, message);
}

void check_row_numbers(const std::vector<std::int64_t>& rows, std::int64_t count) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= count)
      bad_input(
          fmt::format("row-sparse array: rows[{}] is {}; the array has {} rows, counted from 0", i,
                      rows[i], count));
    if (i > 0 && rows[i] <= rows[i - 1])
      bad_input(fmt::format(
          "row-sparse array: rows[{}] is {} and stands after {}; rows must ascend strictly", i,
          rows[i], rows[i - 1]));
  }
}

}  // namespace

template <class T>
std::int64_t RowSparse<T>::row_size() const {
  std::int64_t size = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) size *= shape[d];
  return size;
}

std::string to_string(Storage storage) {
  switch (storage) {
    case Storage::Dense:
      return "dense";
    case Storage::RowSparse:
      return "row_sparse";
    case Storage::Csr:
      break;
  }
  return "csr";
}

template <class T>
Storage storage_of(const Array<T>& array) {
  return static_cast<Storage>(array.index());
}

template <class T>
std::vector<std::int64_t> shape_of(const Array<T>& array) {
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&array)) return {csr->rows, csr->cols};
  if (const auto* rows = std::get_if<RowSparse<T>>(&array)) return rows->shape;
  return std::get<DenseArray<T>>(array).shape;
}

template <class T>
void check(const DenseArray<T>& array) {
  const std::int64_t elements = checked_elements(array.shape);
  if (std::ssize(array.values) != elements)
    bad_input(fmt::format("dense array of {}: there are {} values; the shape needs {}",
                          shape_text(array.shape), array.values.size(), elements));
}

template <class T>
void check(const RowSparse<T>& array) {
  if (array.shape.empty()) bad_input("row-sparse array: the shape is empty; it needs a dimension");
  checked_elements(array.shape);
  check_row_numbers(array.rows, array.shape[0]);
  const std::int64_t needed =
      checked_mul(array.stored(), array.row_size(), "values of a row-sparse array");
  if (std::ssize(array.values) != needed)
    bad_input(fmt::format("row-sparse array of {}: there are {} values; {} rows of {} need {}",
                          shape_text(array.shape), array.values.size(), array.stored(),
                          array.row_size(), needed));
}

template <class T>
void check(const Array<T>& array) {
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&array))
    return internal::require_elements(*csr);
  if (const auto* rows = std::get_if<RowSparse<T>>(&array)) return check(*rows);
  check(std::get<DenseArray<T>>(array));
}

template <class T>
RowSparse<T> row_sparse_zeros(std::vector<std::int64_t> shape) {
  RowSparse<T> result{std::move(shape), {}, {}};
  check(result);
  return result;
}

template <class T>
RowSparse<T> row_sparse(const DenseArray<T>& data, std::vector<std::int64_t> rows,
                        std::optional<std::vector<std::int64_t>> shape) {
  check(data);
  if (data.shape.empty() || data.shape[0] != std::ssize(rows))
    bad_input(
        fmt::format("row-sparse array: data of {} for {} rows; its first dimension must be "
                    "their number",
                    shape_text(data.shape), rows.size()));
  if (!shape) {
    if (rows.empty())
      bad_input("row-sparse array: invalid shape: without rows it cannot be inferred; give one");
    shape = data.shape;
    shape->front() = checked_add(rows.back(), 1, "rows of a row-sparse array");
  }
  if (shape->size() != data.shape.size() ||
      !std::equal(shape->begin() + 1, shape->end(), data.shape.begin() + 1))
    bad_input(
        fmt::format("row-sparse array: shape mismatch detected: rows of {} in an array of {}; "
                    "all dimensions but the first must be the same",
                    shape_text(data.shape), shape_text(*shape)));
  RowSparse<T> result{std::move(*shape), std::move(rows), data.values};
  check(result);
  return result;
}

template <class U, class T>
RowSparse<U> cast(const RowSparse<T>& array) {
  check(array);
  RowSparse<U> result{array.shape, array.rows, {}};
  result.values.reserve(array.values.size());
  for (const T value : array.values) result.values.push_back(cast_value<U>(value));
  return result;
}

template <class T>
DenseArray<T> to_array(MatrixView<const T> matrix) {
  DenseArray<T> result{{matrix.rows, matrix.cols}, {}};
  result.values.reserve(static_cast<std::size_t>(checked_elements(result.shape)));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c) result.values.push_back(matrix(r, c));
  return result;
}

template <class T>
Matrix<T> to_matrix(const DenseArray<T>& array) {
  check(array);
  if (array.shape.size() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("an array of {} is no matrix; it must have two dimensions",
                            shape_text(array.shape)));
  Matrix<T> result(array.shape[0], array.shape[1]);
  result.elements().assign(array.values.begin(), array.values.end());
  return result;
}

template <class T>
std::ostream& operator<<(std::ostream& out, const DenseArray<T>& array) {
  return out << "dense array " << shape_text(array.shape);
}
template <class T>
std::ostream& operator<<(std::ostream& out, const RowSparse<T>& array) {
  return out << "row-sparse array " << shape_text(array.shape) << ", " << array.stored()
             << " rows stored";
}

#define TESSERA_INSTANTIATE_ARRAYS(T)                                               \
  template struct RowSparse<T>;                                                     \
  template RowSparse<T> cast(const RowSparse<float>&);                              \
  template RowSparse<T> cast(const RowSparse<double>&);                             \
  template RowSparse<T> cast(const RowSparse<Half>&);                               \
  template RowSparse<T> cast(const RowSparse<BFloat16>&);                           \
  template RowSparse<T> cast(const RowSparse<std::int32_t>&);                       \
  template RowSparse<T> cast(const RowSparse<std::int64_t>&);                       \
  template Storage storage_of(const Array<T>&);                                     \
  template std::vector<std::int64_t> shape_of(const Array<T>&);                     \
  template void check(const DenseArray<T>&);                                        \
  template void check(const RowSparse<T>&);                                         \
  template void check(const Array<T>&);                                             \
  template RowSparse<T> row_sparse_zeros(std::vector<std::int64_t>);                \
  template RowSparse<T> row_sparse(const DenseArray<T>&, std::vector<std::int64_t>, \
                                   std::optional<std::vector<std::int64_t>>);       \
  template DenseArray<T> to_array(MatrixView<const T>);                             \
  template Matrix<T> to_matrix(const DenseArray<T>&);                               \
  template std::ostream& operator<<(std::ostream&, const DenseArray<T>&);           \
  template std::ostream& operator<<(std::ostream&, const RowSparse<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_ARRAYS)

#undef TESSERA_INSTANTIATE_ARRAYS

}  // namespace tessera::arrays
