#include "tessera/arrays/tensor/slices.hpp"

#include <utility>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/tensor/internal/visit_sparse.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::arrays {
namespace {

template <class Sparse>
auto dense_of(const Sparse& sparse) {
  const internal::MatrixShape shape = internal::matrix_shape(sparse);
  Matrix<typename Sparse::Value> dense(shape.rows, shape.cols);
  internal::visit_matrix(
      sparse, [&](std::int64_t r, std::int64_t c, typename Sparse::Value v) { dense(r, c) = v; });
  return dense;
}

// Makes a matrix from pointers in which the end of a row is the begin of the next one.
template <class T>
SlicedCsr<T> sliced(std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& begin,
                    const std::vector<std::int32_t>& columns, const std::vector<T>& values) {
  return SlicedCsr<T>(CsrArrays<T>{rows,
                                   cols,
                                   values,
                                   columns,
                                   {begin.begin(), begin.end() - 1},
                                   {begin.begin() + 1, begin.end()}});
}

}  // namespace

template <class T>
std::vector<T> to_dense_values(const CooTensor<T>& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t length : tensor.shape())
    elements = checked_mul(elements, length, "elements of a dense tensor");
  std::vector<T> dense(static_cast<std::size_t>(elements));
  const std::vector<ViewAxis> axes = tensor.layout().axes();
  internal::visit(tensor, [&](const std::int32_t* index, T value) {
    std::int64_t at = 0;
    for (const ViewAxis& axis : axes) at = at * axis.length + internal::along(axis, index);
    dense[std::size_t(at)] = value;
  });
  return dense;
}

template <class T>
Matrix<T> to_dense(const CooTensor<T>& tensor) {
  return dense_of(tensor);
}
template <class T>
Matrix<T> to_dense(const SlicedCsr<T>& matrix) {
  return dense_of(matrix);
}
template <class T>
Matrix<T> to_dense(const SlicedCsc<T>& matrix) {
  return dense_of(matrix);
}

template <class T>
sparse::Csr<T> to_csr(const CooTensor<T>& tensor) {
  const internal::MatrixShape shape = internal::matrix_shape(tensor);
  sparse::Coo<T> coo{shape.rows, shape.cols, {}, {}, {}, {}};
  internal::visit_matrix(tensor, [&](std::int64_t r, std::int64_t c, T value) {
    coo.row.push_back(static_cast<std::int32_t>(r));
    coo.col.push_back(static_cast<std::int32_t>(c));
    coo.values.push_back(value);
  });
  return to_csr(coo);
}

template <class T>
sparse::Csc<T> to_csc(const CooTensor<T>& tensor) {
  return to_csc(to_csr(tensor));
}

template <class T>
sparse::Csr<T> to_csr(const SlicedCsr<T>& matrix) {
  sparse::Csr<T> result{matrix.rows(), matrix.cols(), {}, {0}, matrix.columns(), matrix.values()};
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    result.row_begin.push_back(result.row_begin.back() + matrix.row(r).size());
  return result;
}

template <class T>
sparse::Csc<T> to_csc(const SlicedCsc<T>& matrix) {
  sparse::Csr<T> t = to_csr(matrix.transposed());
  return {t.cols, t.rows, {}, std::move(t.row_begin), std::move(t.col), std::move(t.values)};
}

template <class T>
sparse::Csr<T> to_csr(const SlicedCsc<T>& matrix) {
  return to_csr(to_csc(matrix));
}

template <class T>
CooTensor<T> to_tensor(const sparse::Csr<T>& matrix) {
  internal::require_elements(matrix);
  std::vector<std::int32_t> indices;
  indices.reserve(matrix.col.size() * 2);
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t k = matrix.row_begin[r]; k < matrix.row_begin[r + 1]; ++k) {
      indices.push_back(static_cast<std::int32_t>(r));
      indices.push_back(matrix.col[k]);
    }
  return internal::CooAccess<T>::from_sorted({matrix.rows, matrix.cols}, std::move(indices),
                                             matrix.values);
}

template <class T>
SlicedCsr<T> to_sliced(const sparse::Csr<T>& matrix) {
  internal::require_elements(matrix);
  return sliced(matrix.rows, matrix.cols, matrix.row_begin, matrix.col, matrix.values);
}

template <class T>
SlicedCsc<T> to_sliced(const sparse::Csc<T>& matrix) {
  internal::require_elements(matrix);
  return SlicedCsc<T>(
      sliced(matrix.cols, matrix.rows, matrix.col_begin, matrix.row, matrix.values));
}

#define TESSERA_INSTANTIATE_SLICES(T)                           \
  template std::vector<T> to_dense_values(const CooTensor<T>&); \
  template Matrix<T> to_dense(const CooTensor<T>&);             \
  template Matrix<T> to_dense(const SlicedCsr<T>&);             \
  template Matrix<T> to_dense(const SlicedCsc<T>&);             \
  template sparse::Csr<T> to_csr(const CooTensor<T>&);          \
  template sparse::Csc<T> to_csc(const CooTensor<T>&);          \
  template sparse::Csr<T> to_csr(const SlicedCsr<T>&);          \
  template sparse::Csc<T> to_csc(const SlicedCsc<T>&);          \
  template sparse::Csr<T> to_csr(const SlicedCsc<T>&);          \
  template CooTensor<T> to_tensor(const sparse::Csr<T>&);       \
  template SlicedCsr<T> to_sliced(const sparse::Csr<T>&);       \
  template SlicedCsc<T> to_sliced(const sparse::Csc<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_SLICES)

#undef TESSERA_INSTANTIATE_SLICES

}  // namespace tessera::arrays
