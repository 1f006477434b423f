#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The rules of check.hpp as functions that describe a fault: each returns a sentence about the
// first broken rule, or an empty string. check() throws these sentences; file readers put the place
// in the file before them.

// The largest number of block rows or block columns, because coordinates are 32-bit.
inline constexpr std::int64_t kMaxBlocksAlong = 2147483647;

// A view of the pattern of a Csr or a Csc with the words of that format for messages. A "line" is a
// row of a Csr or a column of a Csc. The view owns nothing.
struct Compressed {
  std::string_view line, cross;             // "row", "column"
  std::string_view begin_name, index_name;  // "row_begin", "col"
  std::int64_t lines = 0, crosses = 0;      // block rows, block columns
  std::span<const std::int64_t> begin;      // [lines + 1]
  std::span<const std::int32_t> index;      // [blocks]
};

// Describes the first violation of rules 1 to 3.
std::string size_problem(std::int64_t rows, std::int64_t cols, BlockShape block);

// Describes a violation of rule 4. O(lines).
std::string pointer_problem(const Compressed& pattern);

// Describes a violation of rule 6. Rule 4 must hold. O(lines + blocks).
std::string range_problem(const Compressed& pattern);

// Describes a violation of rule 7. Rule 4 must hold. O(lines + blocks).
std::string order_problem(const Compressed& pattern);

// Describes a violation of rule 8 by a matrix with `blocks` stored blocks and `values` values.
// Rule 1 must hold.
std::string value_problem(std::int64_t blocks, BlockShape block, std::int64_t values);

// Returns the view of a matrix that the functions above take. Block sides must be at least 1.
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

// The same for a column-compressed matrix.
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

// Throws Error{BadInput} "CSR of 4 x 6: ..." unless `problem` is empty. `format` is "CSR", "CSC" or
// "COO".
void throw_problem(const char* format, std::int64_t rows, std::int64_t cols,
                   const std::string& problem);

// Throws as check() does, except that rule 7 is left out: any order and duplicates pass. Callers
// that are about to sort use it.
template <class T>
void check_but_order(const Csr<T>& matrix);
template <class T>
void check_but_order(const Coo<T>& matrix);

}  // namespace tessera::sparse
