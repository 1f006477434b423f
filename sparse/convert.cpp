#include "tessera/sparse/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/internal/coo_sort.hpp"
#include "tessera/sparse/internal/pattern_counts.hpp"
#include "tessera/sparse/internal/proven.hpp"
#include "tessera/sparse/row_order.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::sparse {
namespace {

// Stores block blocks[i] at position i of `result` for all i; row_begin of `result` is already set.
template <class T>
void gather_blocks(std::span<const std::int64_t> blocks, std::span<const std::int32_t> col,
                   const std::vector<T>& values, Csr<T>& result) {
  const auto area = static_cast<std::size_t>(result.block.area());
  result.col.resize(blocks.size());
  result.values.resize(values.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    result.col[i] = col[blocks[i]];
    std::copy_n(values.begin() + blocks[i] * result.block.area(), area,
                result.values.begin() + static_cast<std::ptrdiff_t>(i * area));
  }
}

// Returns the block row of each position.
template <class T>
std::vector<std::int32_t> rows_of(const Csr<T>& m) {
  std::vector<std::int32_t> rows(m.col.size());
  for (std::int64_t r = 0; r < m.block_rows(); ++r)
    std::fill(rows.begin() + m.row_begin[r], rows.begin() + m.row_begin[r + 1],
              static_cast<std::int32_t>(r));
  return rows;
}

// Calls move(from, to) for every value of a block: its positions in [rows][cols] and [cols][rows].
template <class Move>
void transpose_block(BlockShape block, Move&& move) {
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (std::int64_t c = 0; c < block.cols; ++c) move(r * block.cols + c, c * block.rows + r);
}

// The transposed pattern without values. Calls move(from, to) with the positions of every block in
// the matrix and in its transpose.
template <class T, class Move>
Csr<T> transpose_pattern(const Csr<T>& m, Move&& move) {
  Csr<T> t;
  t.rows = m.cols;
  t.cols = m.rows;
  t.block = m.block.transposed();
  t.col.resize(m.col.size());
  t.row_begin.assign(static_cast<std::size_t>(m.block_cols()) + 1, 0);
  for (const std::int32_t c : m.col) ++t.row_begin[std::size_t(c) + 1];
  for (std::size_t c = 1; c < t.row_begin.size(); ++c) t.row_begin[c] += t.row_begin[c - 1];
  std::vector<std::int64_t> next = t.row_begin;
  for (std::int64_t r = 0; r < m.block_rows(); ++r)
    for (std::int64_t k = m.row_begin[r]; k < m.row_begin[r + 1]; ++k) {
      const std::int64_t to = next[m.col[k]]++;
      t.col[to] = static_cast<std::int32_t>(r);
      move(k, to);
    }
  return t;
}

template <class T>
Csr<T> transpose_checked(const Csr<T>& m) {
  std::vector<T> values(m.values.size());
  const std::int64_t area = m.block.area();
  Csr<T> t = transpose_pattern(m, [&](std::int64_t from_block, std::int64_t to_block) {
    const T* from = m.values.data() + from_block * area;
    T* to = values.data() + to_block * area;
    transpose_block(m.block, [&](std::int64_t i, std::int64_t j) { to[j] = from[i]; });
  });
  t.values = std::move(values);
  return t;
}

template <class T>
std::vector<std::int64_t> transpose_order_checked(const Csr<T>& matrix) {
  std::vector<std::int64_t> order(matrix.values.size());
  const std::int64_t area = matrix.block.area();
  transpose_pattern(matrix, [&](std::int64_t from_block, std::int64_t to_block) {
    std::int64_t* to = order.data() + to_block * area;
    transpose_block(matrix.block,
                    [&](std::int64_t i, std::int64_t j) { to[j] = from_block * area + i; });
  });
  return order;
}

// Adds a value. A half is rounded after each addition. Throws Error{LimitExceeded} if a sum of
// integers does not fit its type.
template <class T>
void add_to(T& sum, T value) {
  if constexpr (std::is_integral_v<T>) {
    if (__builtin_add_overflow(sum, value, &sum))
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("a sum of duplicates does not fit in {} bits; cast the values to a "
                              "wider type first",
                              8 * sizeof(T)));
  } else if constexpr (std::is_floating_point_v<T>) {
    sum += value;
  } else {
    sum = T(float(sum) + float(value));
  }
}

// Adds blocks of the same place to the first of them. The blocks of each row must be sorted.
template <class T>
void add_up_twins(Csr<T>& m) {
  const std::int64_t area = m.block.area();
  std::int64_t kept = 0, k = 0;
  for (std::int64_t r = 0; r < m.block_rows(); ++r) {
    const std::int64_t first = kept;
    for (; k < m.row_begin[r + 1]; ++k) {
      const T* from = m.values.data() + k * area;
      if (kept > first && m.col[kept - 1] == m.col[k]) {
        T* sum = m.values.data() + (kept - 1) * area;
        for (std::int64_t i = 0; i < area; ++i) add_to(sum[i], from[i]);
      } else {
        m.col[kept] = m.col[k];
        std::copy_n(from, area, m.values.data() + kept++ * area);
      }
    }
    m.row_begin[r + 1] = kept;
  }
  m.col.resize(static_cast<std::size_t>(kept));
  m.values.resize(static_cast<std::size_t>(kept * area));
}

}  // namespace

template <class T>
Csr<T> to_csr(const Coo<T>& matrix, Duplicates duplicates) {
  check_but_order(matrix);
  if (matrix.block.is_element() && matrix.blocks() >= internal::kLeastToRadixSort) {
    Csr<T> sorted;
    const bool has_twins = internal::sort_to_csr(matrix, sorted);
    if (has_twins && duplicates == Duplicates::Sum) add_up_twins(sorted);
    // Refused duplicates are sorted again below, together with their positions, for the message.
    if (!has_twins || duplicates == Duplicates::Sum) return sorted;
  }
  RowOrder sorted = sort_by_row(matrix.block_rows(), matrix.row, matrix.col);
  const auto twins = find_duplicate(sorted, matrix.col);
  if (twins && duplicates == Duplicates::Refuse)
    throw Error(ErrorCode::BadInput,
                fmt::format("matrix of {} x {}: block row {}, block column {} is given twice, at "
                            "positions {} and {}; drop one or add them up",
                            matrix.rows, matrix.cols, matrix.row[twins->first],
                            matrix.col[twins->first], twins->first, twins->second));
  Csr<T> result;
  result.rows = matrix.rows, result.cols = matrix.cols, result.block = matrix.block;
  result.row_begin = std::move(sorted.row_begin);
  gather_blocks<T>(sorted.order, matrix.col, matrix.values, result);
  if (twins) add_up_twins(result);
  return result;
}

template <class T>
Csr<T> to_csr(const Csc<T>& matrix) {
  check(matrix);
  return transpose_checked(Csr<T>{matrix.cols, matrix.rows, matrix.block.transposed(),
                                  matrix.col_begin, matrix.row, matrix.values});
}

template <class T>
Csc<T> to_csc(const Csr<T>& matrix) {
  Csr<T> t = transpose(matrix);
  return {matrix.rows,      matrix.cols,        matrix.block, std::move(t.row_begin),
          std::move(t.col), std::move(t.values)};
}

template <class T>
Coo<T> to_coo(const Csr<T>& matrix) {
  check(matrix);
  return {matrix.rows, matrix.cols, matrix.block, rows_of(matrix), matrix.col, matrix.values};
}

template <class T>
Csc<T> to_csc(const Coo<T>& matrix, Duplicates duplicates) {
  return to_csc(to_csr(matrix, duplicates));
}

template <class T>
Coo<T> to_coo(const Csc<T>& matrix) {
  return to_coo(to_csr(matrix));
}

template <class T>
Csr<T> transpose(const Csr<T>& matrix) {
  check(matrix);
  return transpose_checked(matrix);
}

template <class T>
CheckedCsr<T> transpose(const CheckedCsr<T>& matrix) {
  return internal::proven(transpose_checked(*matrix));
}

template <class T>
std::vector<std::int64_t> transpose_order(const Csr<T>& matrix) {
  check(matrix);
  return transpose_order_checked(matrix);
}

template <class T>
std::vector<std::int64_t> transpose_order(const CheckedCsr<T>& matrix) {
  return transpose_order_checked(*matrix);
}

template <class T>
Csr<T> sort_columns(const Csr<T>& matrix, Duplicates duplicates) {
  check_but_order(matrix);
  const std::vector<std::int32_t> rows = rows_of(matrix);
  const RowOrder sorted = sort_by_row(matrix.block_rows(), rows, matrix.col);
  Csr<T> result;
  result.rows = matrix.rows, result.cols = matrix.cols, result.block = matrix.block;
  result.row_begin = matrix.row_begin;
  gather_blocks<T>(sorted.order, matrix.col, matrix.values, result);
  if (duplicates == Duplicates::Sum) add_up_twins(result);
  check(result);  // the only fault that is still possible is a duplicate
  return result;
}

namespace {

template <class T>
Csr<T> with_shape_checked(const Csr<T>& matrix, std::int64_t rows, std::int64_t cols) {
  if (rows < matrix.rows || cols < matrix.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("with_shape: {} x {} cannot hold a matrix of {} x {}; the new sizes "
                            "must not be smaller",
                            rows, cols, matrix.rows, matrix.cols));
  const std::string problem = size_problem(rows, cols, matrix.block);
  if (!problem.empty()) throw Error(ErrorCode::InvalidArgument, "with_shape: " + problem);
  Csr<T> result = matrix;
  result.rows = rows, result.cols = cols;
  result.row_begin.resize(static_cast<std::size_t>(result.block_rows()) + 1, matrix.blocks());
  return result;
}

}  // namespace

template <class T>
Csr<T> with_shape(const Csr<T>& matrix, std::int64_t rows, std::int64_t cols) {
  check(matrix);
  return with_shape_checked(matrix, rows, cols);
}

template <class T>
CheckedCsr<T> with_shape(const CheckedCsr<T>& matrix, std::int64_t rows, std::int64_t cols) {
  if (matrix->rows == rows && matrix->cols == cols) return matrix;
  return internal::proven(with_shape_checked(*matrix, rows, cols));
}

template <class U, class T>
Csr<U> cast(const Csr<T>& matrix) {
  check(matrix);
  Csr<U> result{matrix.rows, matrix.cols, matrix.block, matrix.row_begin, matrix.col, {}};
  result.values.reserve(matrix.values.size());
  for (const T value : matrix.values) result.values.push_back(static_cast<U>(value));
  return result;
}

namespace {

template <class T>
PatternStats stats_checked(const Csr<T>& matrix) {
  internal::PatternCounts counts(matrix.block_rows(), matrix.block_cols(), matrix.block);
  for (std::int64_t r = 0; r < matrix.block_rows(); ++r) {
    counts.begin_row(r);
    const auto row = static_cast<std::size_t>(r);
    for (std::int64_t k = matrix.row_begin[row]; k < matrix.row_begin[row + 1]; ++k)
      counts.add(matrix.col[static_cast<std::size_t>(k)]);
  }
  return std::move(counts).finish();
}

}  // namespace

template <class T>
PatternStats pattern_stats(const Csr<T>& matrix) {
  check(matrix);
  return stats_checked(matrix);
}

template <class T>
PatternStats pattern_stats(const CheckedCsr<T>& matrix) {
  return stats_checked(*matrix);
}

#define TESSERA_INSTANTIATE_CONVERT(T)               \
  template Csr<T> to_csr(const Coo<T>&, Duplicates); \
  template Csr<T> to_csr(const Csc<T>&);             \
  template Csc<T> to_csc(const Csr<T>&);             \
  template Csr<T> transpose(const Csr<T>&);

TESSERA_INSTANTIATE_CONVERT(float)
TESSERA_INSTANTIATE_CONVERT(double)
TESSERA_INSTANTIATE_CONVERT(Half)
TESSERA_INSTANTIATE_CONVERT(BFloat16)
TESSERA_INSTANTIATE_CONVERT(std::int32_t)
TESSERA_INSTANTIATE_CONVERT(std::int64_t)

#undef TESSERA_INSTANTIATE_CONVERT

template Csc<float> to_csc(const Coo<float>&, Duplicates);
template Csc<double> to_csc(const Coo<double>&, Duplicates);
template Coo<float> to_coo(const Csc<float>&);
template Coo<double> to_coo(const Csc<double>&);
template Coo<float> to_coo(const Csr<float>&);
template Coo<double> to_coo(const Csr<double>&);
template CheckedCsr<float> transpose(const CheckedCsr<float>&);
template CheckedCsr<double> transpose(const CheckedCsr<double>&);
template std::vector<std::int64_t> transpose_order(const CheckedCsr<float>&);
template std::vector<std::int64_t> transpose_order(const CheckedCsr<double>&);
template CheckedCsr<float> with_shape(const CheckedCsr<float>&, std::int64_t, std::int64_t);
template CheckedCsr<double> with_shape(const CheckedCsr<double>&, std::int64_t, std::int64_t);
template PatternStats pattern_stats(const CheckedCsr<float>&);
template PatternStats pattern_stats(const CheckedCsr<double>&);
template std::vector<std::int64_t> transpose_order(const Csr<float>&);
template std::vector<std::int64_t> transpose_order(const Csr<double>&);
template Csr<float> sort_columns(const Csr<float>&, Duplicates);
template Csr<double> sort_columns(const Csr<double>&, Duplicates);
template Csr<float> with_shape(const Csr<float>&, std::int64_t, std::int64_t);
template Csr<double> with_shape(const Csr<double>&, std::int64_t, std::int64_t);
template Csr<float> cast<float>(const Csr<float>&);
template Csr<float> cast<float>(const Csr<double>&);
template Csr<double> cast<double>(const Csr<float>&);
template Csr<double> cast<double>(const Csr<double>&);
template PatternStats pattern_stats(const Csr<float>&);
template PatternStats pattern_stats(const Csr<double>&);

}  // namespace tessera::sparse
