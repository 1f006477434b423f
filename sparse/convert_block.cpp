#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/internal/proven.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::sparse {
namespace {

void check_new_block(std::int64_t rows, std::int64_t cols, BlockShape from, BlockShape to) {
  const std::string problem = size_problem(rows, cols, to);
  if (!problem.empty()) throw Error(ErrorCode::InvalidArgument, "with_block: " + problem);
  const auto fits = [](std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; };
  if (!fits(from.rows, to.rows) || !fits(from.cols, to.cols))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("with_block: blocks of {} x {} cannot become {} x {}; each new side "
                            "must divide the old one or be a multiple of it (go through 1 x 1)",
                            from.rows, from.cols, to.rows, to.cols));
}

template <class T>
Csr<T> like(const Csr<T>& m, BlockShape block) {
  Csr<T> result;
  result.rows = m.rows, result.cols = m.cols, result.block = block;
  result.row_begin.reserve(static_cast<std::size_t>(result.block_rows()) + 1);
  return result;
}

// Splits every block into `factor.rows` x `factor.cols` smaller ones.
template <class T>
Csr<T> split(const Csr<T>& m, BlockShape block) {
  const BlockShape factor{m.block.rows / block.rows, m.block.cols / block.cols};
  Csr<T> result = like(m, block);
  result.col.reserve(m.col.size() * static_cast<std::size_t>(factor.area()));
  result.values.reserve(m.values.size());
  for (std::int64_t row = 0; row < result.block_rows(); ++row) {
    const std::int64_t old_row = row / factor.rows, top = row % factor.rows * block.rows;
    for (std::int64_t k = m.row_begin[old_row]; k < m.row_begin[old_row + 1]; ++k)
      for (std::int64_t part = 0; part < factor.cols; ++part) {
        result.col.push_back(static_cast<std::int32_t>(m.col[k] * factor.cols + part));
        const T* from = m.values.data() + k * m.block.area() + top * m.block.cols;
        for (std::int64_t r = 0; r < block.rows; ++r, from += m.block.cols)
          result.values.insert(result.values.end(), from + part * block.cols,
                               from + (part + 1) * block.cols);
      }
    result.row_begin.push_back(result.blocks());
  }
  return result;
}

// Merges the block rows of `m` that belong to one larger block row into that row, from left to
// right: next_[i] is the position reached in row `first + i`, and the leftmost block column that is
// left in any of these rows is the next one of the result.
template <class T>
class Merger {
 public:
  Merger(const Csr<T>& m, BlockShape block, Incomplete incomplete)
      : m_(m),
        factor_{block.rows / m.block.rows, block.cols / m.block.cols},
        incomplete_(incomplete),
        next_(static_cast<std::size_t>(factor_.rows)),
        result_(like(m, block)) {}

  Csr<T> run() {
    for (std::int64_t row = 0; row < result_.block_rows(); ++row) {
      const std::int64_t first = row * factor_.rows;
      std::copy_n(m_.row_begin.begin() + first, factor_.rows, next_.begin());
      for (std::int64_t col = leftmost(first); col < kNone; col = leftmost(first)) take(first, col);
      result_.row_begin.push_back(result_.blocks());
    }
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  // Returns the leftmost remaining block column, in blocks of the result, or kNone.
  std::int64_t leftmost(std::int64_t first) const {
    std::int64_t least = kNone;
    for (std::int64_t i = 0; i < factor_.rows; ++i)
      if (next_[i] < m_.row_begin[first + i + 1])
        least = std::min(least, m_.col[next_[i]] / factor_.cols);
    return least;
  }

  void take(std::int64_t first, std::int64_t col) {
    const std::size_t begin = result_.values.size();
    result_.col.push_back(static_cast<std::int32_t>(col));
    result_.values.resize(begin + static_cast<std::size_t>(result_.block.area()));
    std::int64_t parts = 0;
    for (std::int64_t i = 0; i < factor_.rows; ++i)
      while (next_[i] < m_.row_begin[first + i + 1] && m_.col[next_[i]] / factor_.cols == col) {
        copy_part(next_[i], i, m_.col[next_[i]] % factor_.cols, result_.values.data() + begin);
        ++next_[i], ++parts;
      }
    if (incomplete_ == Incomplete::Refuse && parts != factor_.area())
      throw Error(ErrorCode::BadInput,
                  fmt::format("with_block: of the {} x {} block at block row {}, block column {} "
                              "only {} of {} parts are stored; store them all or allow zeros",
                              result_.block.rows, result_.block.cols, first / factor_.rows, col,
                              parts, factor_.area()));
  }

  void copy_part(std::int64_t position, std::int64_t down, std::int64_t right, T* to) const {
    const T* from = m_.values.data() + position * m_.block.area();
    to += down * m_.block.rows * result_.block.cols + right * m_.block.cols;
    for (std::int64_t r = 0; r < m_.block.rows; ++r)
      std::copy_n(from + r * m_.block.cols, m_.block.cols, to + r * result_.block.cols);
  }

  const Csr<T>& m_;
  BlockShape factor_;  // old blocks along the sides of a new block
  Incomplete incomplete_;
  std::vector<std::int64_t> next_;  // [factor_.rows]
  Csr<T> result_;
};

template <class T>
Csr<T> with_block_checked(const Csr<T>& matrix, BlockShape block, Incomplete incomplete) {
  check_new_block(matrix.rows, matrix.cols, matrix.block, block);
  const BlockShape small{std::min(matrix.block.rows, block.rows),
                         std::min(matrix.block.cols, block.cols)};
  if (small == matrix.block) return Merger<T>(matrix, block, incomplete).run();
  Csr<T> parts = split(matrix, small);
  if (small == block) return parts;
  return Merger<T>(parts, block, incomplete).run();
}

}  // namespace

template <class T>
Csr<T> with_block(const Csr<T>& matrix, BlockShape block, Incomplete incomplete) {
  check(matrix);
  return with_block_checked(matrix, block, incomplete);
}

template <class T>
CheckedCsr<T> with_block(const CheckedCsr<T>& matrix, BlockShape block, Incomplete incomplete) {
  if (matrix->block == block) return matrix;
  return internal::proven(with_block_checked(*matrix, block, incomplete));
}

template <class T>
Csc<T> with_block(const Csc<T>& matrix, BlockShape block, Incomplete incomplete) {
  return to_csc(with_block(to_csr(matrix), block, incomplete));
}

template <class T>
Coo<T> with_block(const Coo<T>& matrix, BlockShape block, Incomplete incomplete) {
  return to_coo(with_block(to_csr(matrix), block, incomplete));
}

template <class T>
Csr<T> inflate(const Csr<T>& matrix, BlockShape block) {
  check(matrix);
  if (!matrix.block.is_element() || block.rows < 1 || block.cols < 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("inflate: blocks of {} x {} cannot become {} x {}; it turns elements "
                            "into blocks with sides of at least 1",
                            matrix.block.rows, matrix.block.cols, block.rows, block.cols));
  Csr<T> result{checked_mul(matrix.rows, block.rows, "inflate: rows"),
                checked_mul(matrix.cols, block.cols, "inflate: columns"),
                block,
                matrix.row_begin,
                matrix.col,
                {}};
  const std::int64_t area = checked_mul(block.rows, block.cols, "inflate: area of a block");
  result.values.reserve(
      static_cast<std::size_t>(checked_mul(matrix.blocks(), area, "inflate: values")));
  for (const T value : matrix.values)
    result.values.insert(result.values.end(), static_cast<std::size_t>(area), value);
  return result;
}

template Csr<float> with_block(const Csr<float>&, BlockShape, Incomplete);
template Csr<double> with_block(const Csr<double>&, BlockShape, Incomplete);
template Csc<float> with_block(const Csc<float>&, BlockShape, Incomplete);
template Csc<double> with_block(const Csc<double>&, BlockShape, Incomplete);
template Coo<float> with_block(const Coo<float>&, BlockShape, Incomplete);
template Coo<double> with_block(const Coo<double>&, BlockShape, Incomplete);
template CheckedCsr<float> with_block(const CheckedCsr<float>&, BlockShape, Incomplete);
template CheckedCsr<double> with_block(const CheckedCsr<double>&, BlockShape, Incomplete);
template Csr<float> inflate(const Csr<float>&, BlockShape);
template Csr<double> inflate(const Csr<double>&, BlockShape);

}  // namespace tessera::sparse
