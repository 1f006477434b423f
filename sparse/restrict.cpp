#include "tessera/sparse/restrict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/internal/proven.hpp"
#include "tessera/sparse/part.hpp"

namespace tessera::sparse {
namespace {

constexpr std::int64_t kNone = -1;

// Reads the elements of one row of a matrix at a time, by column.
template <class T>
class RowReader {
 public:
  explicit RowReader(const Csr<T>& m) : m_(m), at_(std::size_t(m.block_cols()), kNone) {}

  void go_to(std::int64_t row) {
    in_block_ = row % m_.block.rows;
    const std::int64_t block_row = row / m_.block.rows;
    if (block_row == block_row_) return;
    mark(block_row_, false);
    block_row_ = block_row < m_.block_rows() ? block_row : kNone;
    mark(block_row_, true);
  }

  // The position of this column's element in the values.
  std::int64_t position(std::int64_t col) const {
    const std::int64_t block_col = col / m_.block.cols;
    const std::int64_t at = block_col < m_.block_cols() ? at_[std::size_t(block_col)] : kNone;
    if (at == kNone) return kNone;
    return at * m_.block.area() + in_block_ * m_.block.cols + col % m_.block.cols;
  }

 private:
  void mark(std::int64_t block_row, bool here) {
    if (block_row == kNone) return;
    const auto row = std::size_t(block_row);
    for (std::int64_t k = m_.row_begin[row]; k < m_.row_begin[row + 1]; ++k)
      at_[std::size_t(m_.col[std::size_t(k)])] = here ? k : kNone;
  }

  const Csr<T>& m_;
  std::vector<std::int64_t> at_;  // [block columns] position of the block in the current block row
  std::int64_t block_row_ = kNone, in_block_ = 0;
};

}  // namespace

template <class T>
std::vector<std::int64_t> positions_on(const CheckedCsr<T>& matrix, const CheckedCsr<T>& on,
                                       std::int64_t run) {
  const Csr<T>& pattern = *on;
  const BlockShape block = pattern.block;
  if (run < 1 || block.cols % run != 0 || matrix->block.cols % run != 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("positions_on: a run of {} values does not divide blocks of {} and {} "
                            "columns",
                            run, block.cols, matrix->block.cols));
  std::vector<std::int64_t> positions(pattern.values.size() / std::size_t(run));
  RowReader<T> reader(*matrix);
  for (std::int64_t row = 0; row < pattern.rows; ++row) {
    reader.go_to(row);
    const auto block_row = std::size_t(row / block.rows);
    for (std::int64_t k = pattern.row_begin[block_row]; k < pattern.row_begin[block_row + 1]; ++k) {
      std::int64_t* to =
          positions.data() + (k * block.area() + row % block.rows * block.cols) / run;
      const std::int64_t first = pattern.col[std::size_t(k)] * block.cols;
      for (std::int64_t c = 0; c < block.cols; c += run) *to++ = reader.position(first + c);
    }
  }
  return positions;
}

namespace {

template <class T>
Csr<T> cropped_checked(const Csr<T>& elements, std::int64_t rows, std::int64_t cols) {
  if (!elements.block.is_element() || rows < 0 || cols < 0 || rows > elements.rows ||
      cols > elements.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("cropped: {} x {} of a matrix of {} x {} in {} x {} blocks; the matrix "
                            "must be at least as large and stored as elements",
                            rows, cols, elements.rows, elements.cols, elements.block.rows,
                            elements.block.cols));
  return part_of(elements, {0, rows}, {0, cols});
}

}  // namespace

template <class T>
Csr<T> cropped(const Csr<T>& elements, std::int64_t rows, std::int64_t cols) {
  check(elements);
  return cropped_checked(elements, rows, cols);
}

template <class T>
CheckedCsr<T> cropped(const CheckedCsr<T>& elements, std::int64_t rows, std::int64_t cols) {
  return internal::proven(cropped_checked(*elements, rows, cols));
}

CheckedCsr<float> inside(const CheckedCsr<float>& matrix, std::int64_t rows, std::int64_t cols) {
  if (matrix->rows == rows && matrix->cols == cols) return matrix;
  return cropped(with_block(matrix, BlockShape{1, 1}), rows, cols);
}

Csr<float> inside(Csr<float> matrix, std::int64_t rows, std::int64_t cols) {
  if (matrix.rows == rows && matrix.cols == cols) return matrix;
  return cropped(with_block(matrix, BlockShape{1, 1}), rows, cols);
}

template std::vector<std::int64_t> positions_on(const CheckedCsr<float>&, const CheckedCsr<float>&,
                                                std::int64_t);
template std::vector<std::int64_t> positions_on(const CheckedCsr<double>&,
                                                const CheckedCsr<double>&, std::int64_t);
template CheckedCsr<float> cropped(const CheckedCsr<float>&, std::int64_t, std::int64_t);
template CheckedCsr<double> cropped(const CheckedCsr<double>&, std::int64_t, std::int64_t);
template Csr<float> cropped(const Csr<float>&, std::int64_t, std::int64_t);
template Csr<double> cropped(const Csr<double>&, std::int64_t, std::int64_t);

}  // namespace tessera::sparse
