#pragma once

#include "tessera/base/error.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/sparse/internal/problems.hpp"

namespace tessera::inline v0::sparse::internal {

// A matrix as the rules see it. Block sides must be at least 1.
template <class T>
Compressed as_compressed(const Csr<T>& m) {
  return {.line = "row",
          .cross = "column",
          .begin_name = "row_begin",
          .index_name = "col",
          .lines = m.block_rows(),
          .crosses = m.block_cols(),
          .begin = m.row_begin,
          .index = m.col};
}

template <class T>
Compressed as_compressed(const Csc<T>& m) {
  return {.line = "column",
          .cross = "row",
          .begin_name = "col_begin",
          .index_name = "row",
          .lines = m.block_cols(),
          .crosses = m.block_rows(),
          .begin = m.col_begin,
          .index = m.row};
}

// Error{BadInput} "CSR of 4 x 6: ..." unless `problem` is empty. `format` is "CSR", "CSC", "COO".
void throw_problem(const char* format, std::int64_t rows, std::int64_t cols,
                   const std::string& problem);

// check() without the ascending order, for those who are about to sort. Duplicates pass too.
template <class T>
void check_but_order(const Csr<T>& matrix);
template <class T>
void check_but_order(const Coo<T>& matrix);

}  // namespace tessera::inline v0::sparse::internal
