#include <fmt/format.h>

#include <vector>

#include "tessera/io/internal/smtx_text.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::io {
namespace {

using internal::Lines;
using internal::take_word;
using internal::WholeNumber;

constexpr bool kCommasToo = true;

// Returns exactly `count` numbers of the current line, all in the range. Memory depends on the
// length of the line and not on `count`.
template <class Integer>
std::vector<Integer> numbers_on_line(const Lines& lines, std::int64_t count,
                                     const WholeNumber& expected) {
  std::string_view rest = lines.line();
  std::vector<Integer> numbers;
  // A number and its separator take two bytes at least.
  const auto most = static_cast<std::int64_t>(rest.size() / 2 + 1);
  numbers.reserve(static_cast<std::size_t>(count < most ? count : most));
  for (auto word = take_word(rest, kCommasToo); !word.empty(); word = take_word(rest, kCommasToo)) {
    if (static_cast<std::int64_t>(numbers.size()) == count)
      lines.fail(fmt::format("more than {} numbers on the line, from {} on; there must be {}",
                             count, internal::quoted(word), count));
    numbers.push_back(static_cast<Integer>(whole_number(lines, word, expected)));
  }
  if (static_cast<std::int64_t>(numbers.size()) != count)
    lines.fail(fmt::format("{} numbers on the line, each a {}; there must be {}", numbers.size(),
                           expected.what, count));
  return numbers;
}

struct Sizes {
  std::int64_t rows, cols, blocks;
};

// Returns the three numbers of the current line.
Sizes sizes_on_line(const Lines& lines) {
  std::string_view rest = lines.line();
  const auto take = [&](std::string_view what) {
    return whole_number(lines, take_word(rest, kCommasToo), {what, 0, INT64_MAX});
  };
  const std::int64_t rows = take("number of rows"), cols = take("number of columns"),
                     blocks = take("number of non-zeros");
  const std::string_view extra = take_word(rest, kCommasToo);
  if (!extra.empty())
    lines.fail(fmt::format("{} follows the three sizes; they must be alone on their line",
                           internal::quoted(extra)));
  return {rows, cols, blocks};
}

Sizes read_sizes(Lines& lines) {
  if (!lines.next_with_content())
    lines.fail("the file is empty; it must start with: rows, columns, non-zeros");
  const auto [rows, cols, blocks] = sizes_on_line(lines);
  internal::check_sizes_against_file(lines, rows, cols);
  if (blocks > rows * cols)
    lines.fail(fmt::format("{} non-zeros do not fit in {} rows and {} columns; the most is {}",
                           blocks, rows, cols, rows * cols));
  return {rows, cols, blocks};
}

}  // namespace

void internal::check_smtx_start(std::string_view start, std::string_view name) {
  Lines lines(start, name);
  if (lines.next_with_content()) sizes_on_line(lines);  // else there are only comments so far
}

sparse::Csr<double> internal::read_smtx_places(std::string_view text, std::string_view name) {
  Lines lines(text, name);
  const Sizes sizes = read_sizes(lines);
  sparse::Csr<double> matrix;
  matrix.rows = sizes.rows, matrix.cols = sizes.cols;
  if (!lines.next_with_content())
    lines.fail(fmt::format("the file ends before its second line, {} row offsets", sizes.rows + 1));
  const std::int64_t pointer_line = lines.number();
  matrix.row_begin =
      numbers_on_line<std::int64_t>(lines, sizes.rows + 1, {"row offset", 0, sizes.blocks});
  if (sizes.blocks > 0) {
    if (!lines.next_with_content())
      lines.fail(
          fmt::format("the file ends before its third line, {} column indices", sizes.blocks));
    matrix.col =
        numbers_on_line<std::int32_t>(lines, sizes.blocks, {"column index", 0, sizes.cols - 1});
  }
  const auto pattern = sparse::as_compressed(matrix);
  if (const std::string p = sparse::pointer_problem(pattern); !p.empty())
    lines.fail(p, ErrorCode::BadInput, pointer_line);
  if (const std::string p = sparse::order_problem(pattern); !p.empty()) lines.fail(p);
  if (lines.next_with_content())
    lines.fail("more text after the last line of the matrix; remove it");
  return matrix;
}

ReadMatrix read_smtx(std::string_view text, std::string_view name) {
  ReadMatrix result{internal::read_smtx_places(text, name), false, {}};
  result.matrix.values.assign(result.matrix.col.size(), 1.0);
  return result;
}

}  // namespace tessera::io
