#include <fmt/format.h>

#include "tessera/io/internal/text.hpp"
#include "tessera/io/read.hpp"

namespace tessera::io {
namespace {

using internal::Lines;

// Reads the words of a text one after the other, across lines.
class Words {
 public:
  explicit Words(Lines& lines) : lines_(lines) {}

  // Returns the next word, or an empty word at the end of the text.
  std::string_view next() {
    for (;;) {
      const std::string_view word = internal::take_word(rest_);
      if (!word.empty() || !lines_.next()) return word;
      rest_ = lines_.line();
    }
  }

 private:
  Lines& lines_;
  std::string_view rest_;
};

[[noreturn]] void refuse_place(const Lines& lines, std::string_view word, std::int64_t row,
                               std::int64_t col) {
  const std::string found =
      word.empty() ? "is missing: the file ends too early" : "is " + internal::quoted(word);
  lines.fail(
      fmt::format("the element at row {}, column {} {}; it must be 0 or 1", row, col, found));
}

}  // namespace

ReadMatrix read_mask(std::string_view text, std::string_view name) {
  Lines lines(text, name);
  Words words(lines);
  ReadMatrix result;
  sparse::Csr<double>& matrix = result.matrix;
  matrix.rows = whole_number(lines, words.next(), {"number of rows", 0, INT64_MAX});
  matrix.cols = whole_number(lines, words.next(), {"number of columns", 0, INT64_MAX});
  internal::check_sizes_against_file(lines, matrix.rows, matrix.cols);
  // Every place takes a digit and a blank, except that the last one may have no blank.
  if (matrix.rows * matrix.cols > lines.bytes() / 2 + 1)
    lines.fail(
        fmt::format("{} rows and {} columns need {} elements; a file of {} bytes cannot hold them: "
                    "it was cut off or its sizes are wrong",
                    matrix.rows, matrix.cols, matrix.rows * matrix.cols, lines.bytes()));
  matrix.row_begin.reserve(static_cast<std::size_t>(matrix.rows) + 1);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t col = 0; col < matrix.cols; ++col) {
      const std::string_view word = words.next();
      if (word != "0" && word != "1") refuse_place(lines, word, row, col);
      if (word == "1") matrix.col.push_back(static_cast<std::int32_t>(col));
    }
    matrix.row_begin.push_back(matrix.blocks());
  }
  const std::string_view extra = words.next();
  if (!extra.empty())
    lines.fail(
        fmt::format("{} follows the last of {} rows and {} columns; remove it or correct "
                    "the sizes",
                    internal::quoted(extra), matrix.rows, matrix.cols));
  matrix.values.assign(matrix.col.size(), 1.0);
  return result;
}

}  // namespace tessera::io
