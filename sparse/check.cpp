#include "tessera/sparse/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/internal/check_count.hpp"
#include "tessera/sparse/internal/proven.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::sparse {

void throw_problem(const char* format, std::int64_t rows, std::int64_t cols,
                   const std::string& problem) {
  if (problem.empty()) return;
  throw Error(ErrorCode::BadInput, fmt::format("{} of {} x {}: {}", format, rows, cols, problem));
}

namespace {

std::atomic<std::int64_t> checks = 0;

void count_check() { checks.fetch_add(1, std::memory_order_relaxed); }

std::string count_problem(const auto& m) {
  return value_problem(m.blocks(), m.block, static_cast<std::int64_t>(m.values.size()));
}

// Describes a violation of rules 1 to 4 by a Csr or Csc.
template <class Matrix>
std::string frame_problem(const Matrix& m) {
  const std::string problem = size_problem(m.rows, m.cols, m.block);
  return problem.empty() ? pointer_problem(as_compressed(m)) : problem;
}

// Describes a violation of rules 1 to 4, 6 and 8 by a Csr or Csc.
template <class Matrix>
std::string problem_but_order(const Matrix& m) {
  std::string problem = frame_problem(m);
  if (problem.empty()) problem = range_problem(as_compressed(m));
  return problem.empty() ? count_problem(m) : problem;
}

template <class T>
std::string problem_but_order(const Coo<T>& m) {
  const std::string of_size = size_problem(m.rows, m.cols, m.block);
  if (!of_size.empty()) return of_size;
  if (m.row.size() != m.col.size())
    return fmt::format("{} row and {} column coordinates; every block needs one of each",
                       m.row.size(), m.col.size());
  for (std::size_t i = 0; i < m.row.size(); ++i) {
    const std::int32_t r = m.row[i], c = m.col[i];
    if (r < 0 || r >= m.block_rows() || c < 0 || c >= m.block_cols())
      return fmt::format(
          "position {} names block row {}, block column {}; the matrix has {} block "
          "rows and {} block columns, counted from 0",
          i, r, c, m.block_rows(), m.block_cols());
  }
  return count_problem(m);
}

// Describes the first place that is given twice. It sorts keys instead of counting per row, so that
// a matrix with many rows and few blocks stays cheap to check.
template <class T>
std::string duplicate_problem(const Coo<T>& m) {
  const auto key = [&m](std::size_t i) {
    return (static_cast<std::uint64_t>(m.row[i]) << 32) | static_cast<std::uint32_t>(m.col[i]);
  };
  std::size_t ascending = 1;
  while (ascending < m.row.size() && key(ascending - 1) < key(ascending)) ++ascending;
  if (ascending >= m.row.size()) return {};
  std::vector<std::pair<std::uint64_t, std::size_t>> entries(m.row.size());
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = {key(i), i};
  std::sort(entries.begin(), entries.end());
  const auto twin =
      std::adjacent_find(entries.begin(), entries.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twin == entries.end()) return {};
  const std::size_t i = twin->second, again = (twin + 1)->second;
  return fmt::format(
      "block row {}, block column {} is given twice, at positions {} and {}; drop "
      "one or add them up",
      m.row[i], m.col[i], i, again);
}

}  // namespace

template <class T>
void check_but_order(const Csr<T>& matrix) {
  count_check();
  throw_problem("CSR", matrix.rows, matrix.cols, problem_but_order(matrix));
}

template <class T>
void check_but_order(const Coo<T>& matrix) {
  count_check();
  throw_problem("COO", matrix.rows, matrix.cols, problem_but_order(matrix));
}

template void check_but_order(const Csr<float>&);
template void check_but_order(const Csr<double>&);
template void check_but_order(const Coo<float>&);
template void check_but_order(const Coo<double>&);

template <class T>
void check(const Csr<T>& matrix) {
  check_but_order(matrix);
  throw_problem("CSR", matrix.rows, matrix.cols, order_problem(as_compressed(matrix)));
}

template <class T>
void check(const Csc<T>& matrix) {
  count_check();
  throw_problem("CSC", matrix.rows, matrix.cols, problem_but_order(matrix));
  throw_problem("CSC", matrix.rows, matrix.cols, order_problem(as_compressed(matrix)));
}

template <class T>
void check(const Coo<T>& matrix) {
  check_but_order(matrix);
  throw_problem("COO", matrix.rows, matrix.cols, duplicate_problem(matrix));
}

template <class T>
void check_all_but_columns(const Csr<T>& matrix) {
  count_check();
  std::string problem = frame_problem(matrix);
  if (problem.empty()) problem = count_problem(matrix);
  throw_problem("CSR", matrix.rows, matrix.cols, problem);
}

bool is_legal_row(std::span<const std::int32_t> col, std::int64_t block_cols) {
  if (col.empty()) return true;
  int descends = 0;  // no early exit, so that the compiler vectorises the loop
  for (std::size_t i = 1; i < col.size(); ++i) descends |= col[i] <= col[i - 1];
  return descends == 0 && col.front() >= 0 && col.back() < block_cols;
}

namespace {

// Does what check() does, in half the time for a legal matrix.
template <class T>
void check_quickly(const Csr<T>& matrix) {
  check_all_but_columns(matrix);
  bool legal = true;
  for (std::size_t row = 0; legal && row + 1 < matrix.row_begin.size(); ++row) {
    const auto begin = std::size_t(matrix.row_begin[row]);
    legal = is_legal_row(
        std::span(matrix.col).subspan(begin, std::size_t(matrix.row_begin[row + 1]) - begin),
        matrix.block_cols());
  }
  if (!legal) check(matrix);  // throws, and says what is wrong
}

}  // namespace

template <class T>
CheckedCsr<T>::CheckedCsr(Csr<T> matrix) {
  check_quickly(matrix);
  matrix_ = std::make_shared<Csr<T>>(std::move(matrix));
}

template <class T>
CheckedCsr<T> checked(Csr<T> matrix) {
  return CheckedCsr<T>(std::move(matrix));
}

std::int64_t internal::checks_done() { return checks.load(std::memory_order_relaxed); }

template class CheckedCsr<float>;
template class CheckedCsr<double>;
template CheckedCsr<float> checked(Csr<float>);
template CheckedCsr<double> checked(Csr<double>);
template void check_all_but_columns(const Csr<float>&);
template void check_all_but_columns(const Csr<double>&);
#define TESSERA_INSTANTIATE_CHECK(T)  \
  template void check(const Csr<T>&); \
  template void check(const Csc<T>&); \
  template void check(const Coo<T>&);

TESSERA_INSTANTIATE_CHECK(float)
TESSERA_INSTANTIATE_CHECK(double)
TESSERA_INSTANTIATE_CHECK(Half)
TESSERA_INSTANTIATE_CHECK(BFloat16)
TESSERA_INSTANTIATE_CHECK(std::int32_t)
TESSERA_INSTANTIATE_CHECK(std::int64_t)

#undef TESSERA_INSTANTIATE_CHECK

}  // namespace tessera::sparse
