#include "tessera/sparse/rules.hpp"

#include <fmt/format.h>

namespace tessera::sparse {
namespace {

// `along` is "rows" or "columns".
std::string side_problem(std::string_view along, std::int64_t size, std::int64_t side) {
  if (size < 0) return fmt::format("the matrix has {} {}; the minimum is 0", size, along);
  if (size % side != 0)
    return fmt::format(
        "{} {} are not a multiple of the {} {} of a block; pad the matrix to {} {} or "
        "choose other blocks",
        size, along, side, along, (std::uint64_t(size / side) + 1) * std::uint64_t(side), along);
  if (size / side > kMaxBlocksAlong)
    return fmt::format("{} block {} are more than {}, the most a 32-bit coordinate can count",
                       size / side, along, kMaxBlocksAlong);
  return {};
}

}  // namespace

std::string size_problem(std::int64_t rows, std::int64_t cols, BlockShape block) {
  if (block.rows < 1 || block.cols < 1)
    return fmt::format("a block has {} rows and {} columns; the minimum is 1 each", block.rows,
                       block.cols);
  std::int64_t area = 0;
  if (__builtin_mul_overflow(block.rows, block.cols, &area))
    return fmt::format("a block of {} rows and {} columns has an area beyond 64 bits", block.rows,
                       block.cols);
  const std::string of_rows = side_problem("rows", rows, block.rows);
  return of_rows.empty() ? side_problem("columns", cols, block.cols) : of_rows;
}

std::string pointer_problem(const Compressed& p) {
  const auto entries = static_cast<std::int64_t>(p.begin.size());
  const auto blocks = static_cast<std::int64_t>(p.index.size());
  if (entries != p.lines + 1)
    return fmt::format("{} has {} entries; {} block {}s need {}", p.begin_name, entries, p.lines,
                       p.line, p.lines + 1);
  if (p.begin.front() != 0)
    return fmt::format("{}[0], the start of block {} 0, is {}; it must be 0", p.begin_name, p.line,
                       p.begin.front());
  for (std::int64_t i = 0; i < p.lines; ++i)
    if (p.begin[i + 1] < p.begin[i])
      return fmt::format("{} descends at block {} {}: from {} to {}; it must never descend",
                         p.begin_name, p.line, i, p.begin[i], p.begin[i + 1]);
  if (p.begin.back() != blocks)
    return fmt::format(
        "{}[{}], the end of the last block {}, is {}; it must be {}, the number of "
        "block {}s in {}",
        p.begin_name, p.lines, p.line, p.begin.back(), blocks, p.cross, p.index_name);
  return {};
}

std::string range_problem(const Compressed& p) {
  for (std::int64_t i = 0; i < p.lines; ++i)
    for (std::int64_t k = p.begin[i]; k < p.begin[i + 1]; ++k)
      if (p.index[k] < 0 || p.index[k] >= p.crosses)
        return fmt::format(
            "{}[{}] in block {} {} names block {} {}; the matrix has {} block {}s, "
            "counted from 0",
            p.index_name, k, p.line, i, p.cross, p.index[k], p.crosses, p.cross);
  return {};
}

std::string order_problem(const Compressed& p) {
  for (std::int64_t i = 0; i < p.lines; ++i)
    for (std::int64_t k = p.begin[i] + 1; k < p.begin[i + 1]; ++k) {
      if (p.index[k] == p.index[k - 1])
        return fmt::format(
            "block {} {} holds block {} {} twice, at {}[{}] and [{}]; drop one or "
            "add them up",
            p.line, i, p.cross, p.index[k], p.index_name, k - 1, k);
      if (p.index[k] < p.index[k - 1])
        return fmt::format(
            "{}[{}] in block {} {}: block {} {} comes after {}; they must ascend (sort_columns "
            "puts a CSR in order)",
            p.index_name, k, p.line, i, p.cross, p.index[k], p.index[k - 1]);
    }
  return {};
}

std::string value_problem(std::int64_t blocks, BlockShape block, std::int64_t values) {
  std::int64_t needed = 0;
  const bool overflows = __builtin_mul_overflow(blocks, block.area(), &needed);
  if (!overflows && needed == values) return {};
  return fmt::format("there are {} values; {} blocks of {} rows and {} columns need {}", values,
                     blocks, block.rows, block.cols,
                     overflows ? "more values than 64 bits can count" : std::to_string(needed));
}

}  // namespace tessera::sparse
