#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::sparse {
namespace {

template <class T>
bool holds_non_zero(MatrixView<const T> block) {
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (std::int64_t c = 0; c < block.cols; ++c)
      if (block(r, c) != T(0)) return true;
  return false;
}

}  // namespace

template <class T>
Matrix<T> to_dense(const Csr<T>& matrix) {
  check(matrix);
  Matrix<T> dense(matrix.rows, matrix.cols);
  const BlockShape block = matrix.block;
  const T* from = matrix.values.data();
  for (std::int64_t row = 0; row < matrix.block_rows(); ++row)
    for (std::int64_t k = matrix.row_begin[row]; k < matrix.row_begin[row + 1]; ++k)
      for (std::int64_t r = 0; r < block.rows; ++r, from += block.cols)
        std::copy_n(from, block.cols, &dense(row * block.rows + r, matrix.col[k] * block.cols));
  return dense;
}

template <class T>
Csr<T> from_dense(MatrixView<const T> matrix, BlockShape block) {
  const std::string problem = size_problem(matrix.rows, matrix.cols, block);
  if (!problem.empty()) throw Error(ErrorCode::InvalidArgument, "from_dense: " + problem);
  Csr<T> result;
  result.rows = matrix.rows, result.cols = matrix.cols, result.block = block;
  result.row_begin.reserve(static_cast<std::size_t>(result.block_rows()) + 1);
  for (std::int64_t row = 0; row < result.block_rows(); ++row) {
    const Range rows{row * block.rows, (row + 1) * block.rows};
    for (std::int64_t col = 0; col < result.block_cols(); ++col) {
      const auto part = matrix.sub(rows, {col * block.cols, (col + 1) * block.cols});
      if (!holds_non_zero(part)) continue;
      result.col.push_back(static_cast<std::int32_t>(col));
      for (std::int64_t r = 0; r < block.rows; ++r)
        for (std::int64_t c = 0; c < block.cols; ++c) result.values.push_back(part(r, c));
    }
    result.row_begin.push_back(result.blocks());
  }
  return result;
}

#define TESSERA_INSTANTIATE_DENSE(T)          \
  template Matrix<T> to_dense(const Csr<T>&); \
  template Csr<T> from_dense(MatrixView<const T>, BlockShape);

TESSERA_INSTANTIATE_DENSE(float)
TESSERA_INSTANTIATE_DENSE(double)
TESSERA_INSTANTIATE_DENSE(Half)
TESSERA_INSTANTIATE_DENSE(BFloat16)
TESSERA_INSTANTIATE_DENSE(std::int32_t)
TESSERA_INSTANTIATE_DENSE(std::int64_t)

#undef TESSERA_INSTANTIATE_DENSE

}  // namespace tessera::sparse
