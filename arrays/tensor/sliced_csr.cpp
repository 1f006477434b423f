#include "tessera/arrays/tensor/sliced_csr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/ops/operation.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace tessera::arrays {
namespace {

template <class T>
std::string length_problem(const CsrArrays<T>& a) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (a.rows < 0 || a.cols < 0 || a.rows > kMax || a.cols > kMax)
    return fmt::format("rows and columns must be in 0..{}", kMax);
  const auto rows = static_cast<std::size_t>(a.rows);
  if (a.row_begin.size() != rows || a.row_end.size() != rows)
    return fmt::format("row_begin has {} entries and row_end {}; both need {}", a.row_begin.size(),
                       a.row_end.size(), a.rows);
  if (a.values.size() != a.columns.size())
    return fmt::format("there are {} values and {} columns; each value needs one column",
                       a.values.size(), a.columns.size());
  return {};
}

template <class T>
std::string row_problem(const CsrArrays<T>& a) {
  std::int64_t least = 0;
  const auto positions = static_cast<std::int64_t>(a.columns.size());
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t begin = a.row_begin[r], end = a.row_end[r];
    if (begin < least || end < begin || end > positions)
      return fmt::format(
          "row {} lies at [{}, {}); it must lie inside [{}, {}), behind the rows "
          "before it",
          r, begin, end, least, positions);
    for (std::int64_t k = begin; k < end; ++k) {
      if (a.columns[k] < 0 || a.columns[k] >= a.cols)
        return fmt::format("columns[{}] in row {} is {}; it must be in {}", k, r, a.columns[k],
                           range_of_indices(a.cols));
      if (k > begin && a.columns[k] <= a.columns[k - 1])
        return fmt::format("columns[{}] in row {}: {} stands after {}; they must ascend strictly",
                           k, r, a.columns[k], a.columns[k - 1]);
    }
    least = end;
  }
  return {};
}

template <class T>
std::int64_t lower_bound(const CsrArrays<T>& a, std::int64_t row, std::int64_t col) {
  const auto begin = a.columns.begin();
  return std::lower_bound(begin + a.row_begin[row], begin + a.row_end[row], col) - begin;
}

// Makes position k free for a new entry of the row; k is inside the row or directly after it.
template <class T>
void open_position(CsrArrays<T>& a, std::int64_t row, std::int64_t k) {
  const std::int64_t end = a.row_end[row]++;
  const bool is_last = row + 1 == a.rows;
  const bool is_free = end < (is_last ? std::int64_t(a.values.size()) : a.row_begin[row + 1]);
  if (is_free) {
    std::move_backward(a.values.begin() + k, a.values.begin() + end, a.values.begin() + end + 1);
    std::move_backward(a.columns.begin() + k, a.columns.begin() + end, a.columns.begin() + end + 1);
    return;
  }
  a.values.insert(a.values.begin() + k, T(0));
  a.columns.insert(a.columns.begin() + k, 0);
  for (std::int64_t r = row + 1; r < a.rows; ++r) ++a.row_begin[r], ++a.row_end[r];
}

template <class T>
void close_position(CsrArrays<T>& a, std::int64_t row, std::int64_t k) {
  const std::int64_t end = a.row_end[row]--;
  std::move(a.values.begin() + k + 1, a.values.begin() + end, a.values.begin() + k);
  std::move(a.columns.begin() + k + 1, a.columns.begin() + end, a.columns.begin() + k);
}

// Appends a run of positions of `from` to `to`.
template <class T>
void append(const CsrArrays<T>& from, Range positions, CsrArrays<T>& to) {
  to.values.insert(to.values.end(), from.values.begin() + positions.begin,
                   from.values.begin() + positions.end);
  to.columns.insert(to.columns.end(), from.columns.begin() + positions.begin,
                    from.columns.begin() + positions.end);
}

}  // namespace

template <class T>
SlicedCsr<T>::SlicedCsr(std::shared_ptr<CsrArrays<T>> arrays, Range rows, Range cols, bool is_view)
    : arrays_(std::move(arrays)), row_range_(rows), col_range_(cols), is_view_(is_view) {}

template <class T>
SlicedCsr<T>::SlicedCsr(std::int64_t rows, std::int64_t cols)
    : arrays_(std::make_shared<CsrArrays<T>>()), row_range_{0, rows}, col_range_{0, cols} {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || cols < 0 || rows > kMax || cols > kMax)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("a matrix of {} x {} is not possible; rows and columns must be in 0..{}", rows,
                    cols, kMax));
  arrays_->rows = rows, arrays_->cols = cols;
  arrays_->row_begin.resize(std::size_t(rows));
  arrays_->row_end.resize(std::size_t(rows));
}

template <class T>
SlicedCsr<T>::SlicedCsr(CsrArrays<T> arrays)
    : row_range_{0, arrays.rows}, col_range_{0, arrays.cols} {
  std::string problem = length_problem(arrays);
  if (problem.empty()) problem = row_problem(arrays);
  if (!problem.empty())
    throw Error(ErrorCode::BadInput,
                fmt::format("four-array CSR of {} x {}: {}", arrays.rows, arrays.cols, problem));
  arrays_ = std::make_shared<CsrArrays<T>>(std::move(arrays));
}

template <class T>
Range SlicedCsr<T>::row(std::int64_t r) const {
  const std::int64_t at = row_range_.begin + resolve_index(r, rows(), 0);
  if (cols() == arrays_->cols) return {arrays_->row_begin[at], arrays_->row_end[at]};
  return {lower_bound(*arrays_, at, col_range_.begin), lower_bound(*arrays_, at, col_range_.end)};
}

template <class T>
std::int64_t SlicedCsr<T>::nnz() const {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < rows(); ++r) sum += row(r).size();
  return sum;
}

template <class T>
std::vector<std::int64_t> SlicedCsr<T>::row_begin() const {
  std::vector<std::int64_t> result;
  for (std::int64_t r = 0; r < rows(); ++r) result.push_back(row(r).begin);
  return result;
}

template <class T>
std::vector<std::int64_t> SlicedCsr<T>::row_end() const {
  std::vector<std::int64_t> result;
  for (std::int64_t r = 0; r < rows(); ++r) result.push_back(row(r).end);
  return result;
}

template <class T>
std::vector<std::int32_t> SlicedCsr<T>::columns() const {
  std::vector<std::int32_t> result;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const Range seen = row(r);
    for (std::int64_t k = seen.begin; k < seen.end; ++k)
      result.push_back(static_cast<std::int32_t>(arrays_->columns[k] - col_range_.begin));
  }
  return result;
}

template <class T>
std::vector<T> SlicedCsr<T>::values() const {
  std::vector<T> result;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const Range seen = row(r);
    result.insert(result.end(), arrays_->values.begin() + seen.begin,
                  arrays_->values.begin() + seen.end);
  }
  return result;
}

template <class T>
T SlicedCsr<T>::get(std::int64_t r, std::int64_t c) const {
  const std::int64_t at = row_range_.begin + resolve_index(r, rows(), 0);
  const std::int64_t col = col_range_.begin + resolve_index(c, cols(), 1);
  const std::int64_t k = lower_bound(*arrays_, at, col);
  return k < arrays_->row_end[at] && arrays_->columns[k] == col ? arrays_->values[k] : T(0);
}

template <class T>
void SlicedCsr<T>::put(std::int64_t r, std::int64_t c, T value) {
  const std::int64_t at = row_range_.begin + resolve_index(r, rows(), 0);
  const std::int64_t col = col_range_.begin + resolve_index(c, cols(), 1);
  CsrArrays<T>& a = *arrays_;
  const std::int64_t k = lower_bound(a, at, col);
  const bool is_there = k < a.row_end[at] && a.columns[k] == col;
  if (value == T(0)) {
    if (is_there) close_position(a, at, k);
    return;
  }
  if (!is_there) open_position(a, at, k);
  a.values[k] = value, a.columns[k] = static_cast<std::int32_t>(col);
}

template <class T>
void SlicedCsr<T>::assign(MatrixView<const T> dense) {
  if (dense.rows != rows() || dense.cols != cols())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a matrix of {} x {} was assigned to one of {} x {}; the sizes must "
                            "agree",
                            dense.rows, dense.cols, rows(), cols()));
  CsrArrays<T> next{arrays_->rows, arrays_->cols, {}, {}, {}, {}};
  for (std::int64_t r = 0; r < arrays_->rows; ++r) {
    next.row_begin.push_back(static_cast<std::int64_t>(next.values.size()));
    const bool is_seen = r >= row_range_.begin && r < row_range_.end;
    const Range seen =
        is_seen ? row(r - row_range_.begin) : Range{arrays_->row_end[r], arrays_->row_end[r]};
    append(*arrays_, {arrays_->row_begin[r], seen.begin}, next);
    for (std::int64_t c = 0; is_seen && c < dense.cols; ++c) {
      const T value = dense(r - row_range_.begin, c);
      if (value == T(0)) continue;
      next.values.push_back(value);
      next.columns.push_back(static_cast<std::int32_t>(col_range_.begin + c));
    }
    append(*arrays_, {seen.end, arrays_->row_end[r]}, next);
    next.row_end.push_back(static_cast<std::int64_t>(next.values.size()));
  }
  *arrays_ = std::move(next);
}

template <class T>
void SlicedCsr<T>::scale(T factor) {
  const Operation<T> multiply(Binary::Multiply, factor);
  for (std::int64_t r = 0; r < rows(); ++r) {
    const Range seen = row(r);
    T* values = arrays_->values.data() + seen.begin;
    multiply.run({values, std::size_t(seen.size())}, values);
  }
}

template <class T>
SlicedCsr<T> SlicedCsr<T>::view(const MatrixSelector& rows_seen,
                                const MatrixSelector& cols_seen) const {
  const Range r = resolve(rows_seen, rows(), 0), c = resolve(cols_seen, cols(), 1);
  return {arrays_,
          {row_range_.begin + r.begin, row_range_.begin + r.end},
          {col_range_.begin + c.begin, col_range_.begin + c.end},
          true};
}

template <class T>
SlicedCsr<T> SlicedCsr<T>::clone() const {
  CsrArrays<T> own{rows(), cols(), values(), columns(), {}, {}};
  std::int64_t end = 0;
  for (std::int64_t r = 0; r < rows(); ++r) {
    own.row_begin.push_back(end);
    own.row_end.push_back(end += row(r).size());
  }
  return SlicedCsr(std::move(own));
}

#define TESSERA_INSTANTIATE_SLICED(T) template class SlicedCsr<T>;

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_SLICED)

#undef TESSERA_INSTANTIATE_SLICED

}  // namespace tessera::arrays
