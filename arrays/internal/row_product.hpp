#pragma once

#include <algorithm>
#include <vector>

#include "tessera/arrays/internal/csr_product.hpp"
#include "tessera/arrays/internal/exact.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays::internal {

// An executor that runs a loop on the calling thread. It needs no memory.
class Serial final : public Executor {
 public:
  int threads() const override { return 1; }

 protected:
  void run(std::int64_t count, Task task) override {
    for (std::int64_t i = 0; i < count; ++i) task.call(task.object, i);
  }
};

// A sparse matrix in rows, whose arrays somebody else owns.
template <class T>
struct RowsView {
  std::int64_t rows = 0, cols = 0;
  const std::int64_t *begin = nullptr, *end = nullptr;  // [rows] positions in values and columns
  const T* values = nullptr;
  const std::int32_t* columns = nullptr;
  std::int64_t first_col = 0;

  RowsView part(std::int64_t first, std::int64_t count) const {
    RowsView result = *this;
    result.rows = count;
    result.begin += first;
    result.end += first;
    return result;
  }
};

// Sets C = beta * C, where a beta of 0 does not read C.
template <class T>
void scale_matrix(MatrixView<T> c, T beta) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j)
      c(i, j) = beta == T(0) ? T(0) : narrow<T>(widen(beta) * widen(c(i, j)));
}

// Computes C = alpha * A * B + beta * C for types without a vector kernel, and for rows that are
// not contiguous: every sum is taken in the type of products and rounded once.
template <class T>
void multiply_rows_plainly(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha,
                           T beta) {
  using Sum = std::conditional_t<IntegerElement<T>, Int128, Wide<T>>;
  std::vector<Sum> sums(static_cast<std::size_t>(b.cols));
  for (std::int64_t r = 0; r < a.rows; ++r) {
    std::fill(sums.begin(), sums.end(), Sum(0));
    for (std::int64_t k = a.begin[r]; k < a.end[r]; ++k) {
      const auto value = static_cast<Sum>(widen(a.values[k]));
      for (std::int64_t j = 0; j < b.cols; ++j)
        add_exactly<Sum>(sums[std::size_t(j)],
                         value * static_cast<Sum>(widen(b(a.columns[k] - a.first_col, j))));
    }
    for (std::int64_t j = 0; j < b.cols; ++j) {
      // Sums of integers are narrowed first, so that their product with alpha fits 128 bits.
      Sum sum = sums[std::size_t(j)];
      if constexpr (IntegerElement<T>) sum = narrow<std::int64_t>(sum);
      Sum result = static_cast<Sum>(widen(alpha)) * sum;
      if (beta != T(0))
        add_exactly<Sum>(result, static_cast<Sum>(widen(beta)) * static_cast<Sum>(widen(c(r, j))));
      c(r, j) = narrow<T>(result);
    }
  }
}

// Computes the rows of C = alpha * A * B + beta * C.
template <class T>
void multiply_some_rows(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha,
                        T beta) {
  if constexpr (std::floating_point<T>) {
    if (b.cols == 1 && b.row_stride == 1 && c.row_stride == 1) {
      scale_matrix(c, beta);
      return add_product(CsrProduct<T>{a.rows, a.begin, a.end, a.values, a.columns,
                                       static_cast<std::int32_t>(a.first_col), b.data, c.data,
                                       alpha});
    }
    if (b.rows_are_contiguous() && c.rows_are_contiguous()) {
      scale_matrix(c, beta);
      return add_matrix_product(CsrMatrixProduct<T>{a.rows, a.begin, a.end, a.values, a.columns,
                                                    a.first_col, b.data, b.row_stride, c.data,
                                                    c.row_stride, b.cols, alpha});
    }
  }
  multiply_rows_plainly(a, b, c, alpha, beta);
}

// Computes C = alpha * A * B + beta * C with the kernels of this folder. Threads take rows.
template <class T>
void multiply_rows_here(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha,
                        T beta, Executor& executor) {
  constexpr std::int64_t kRows = 128;
  executor.for_each((a.rows + kRows - 1) / kRows, [&](std::int64_t part) {
    const Range rows{part * kRows, std::min(a.rows, (part + 1) * kRows)};
    multiply_some_rows(a.part(rows.begin, rows.size()), b, c.sub(rows, {0, c.cols}), alpha, beta);
  });
}

}  // namespace tessera::arrays::internal
