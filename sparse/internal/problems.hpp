#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"

namespace tessera::inline v0::sparse::internal {

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

}  // namespace tessera::inline v0::sparse::internal
