#pragma once

#include "tessera/arrays/internal/row_product.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"

namespace tessera::arrays::internal {

// Computes C = alpha * A * B + beta * C with host::spmm, which reads the lists of A in place. Takes
// float, Half and BFloat16, and rows that follow one another without gaps and show all columns; a
// vector of floats is left to the kernel of csr_product.hpp, which reads faster. Returns false,
// with C unchanged, for everything else. Throws Error{InvalidArgument} if C shares bytes with B.
// O(rows) in addition to the product, for the list of positions.
template <class T>
bool fast_product(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta,
                  Executor& executor);

// Computes C = alpha * A * B + beta * C with A [m][k], B [k][n], C [m][n] on the fastest path that
// the operands have. Threads take rows, so the bits do not depend on their number.
template <class T>
void multiply_rows(const RowsView<T>& a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta,
                   Executor& executor) {
  if (!fast_product(a, b, c, alpha, beta, executor))
    multiply_rows_here(a, b, c, alpha, beta, executor);
}

}  // namespace tessera::arrays::internal
