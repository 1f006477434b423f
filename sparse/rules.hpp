#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The rules of check.hpp as sentences: each function answers with the first broken rule, or with an
// empty string. check() throws them, the file readers put the place in the file before them.

// Largest number of block rows or block columns: coordinates are 32-bit.
inline constexpr std::int64_t kMaxBlocksAlong = 2147483647;

// A compressed pattern with the words of its format: a "line" is a row of a Csr, a column of a Csc.
struct Compressed {
  std::string_view line, cross;             // "row", "column"
  std::string_view begin_name, index_name;  // "row_begin", "col"
  std::int64_t lines = 0, crosses = 0;      // block rows, block columns
  std::span<const std::int64_t> begin;      // [lines + 1]
  std::span<const std::int32_t> index;      // [blocks]
};

// Rules 1 to 3.
std::string size_problem(std::int64_t rows, std::int64_t cols, BlockShape block);
// Rule 4.
std::string pointer_problem(const Compressed& pattern);
// Rule 6; needs rule 4 to hold.
std::string range_problem(const Compressed& pattern);
// Rule 7; needs rule 4 to hold.
std::string order_problem(const Compressed& pattern);
// Rule 8; needs rule 1 to hold.
std::string value_problem(std::int64_t blocks, BlockShape block, std::int64_t values);

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

}  // namespace tessera::sparse
