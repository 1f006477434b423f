#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::io::internal {

// A text file line by line, for readers that must say where something is wrong. Lines end with LF,
// CRLF or the end of the text. Looks at the text, copies nothing; the text must outlive it.
class Lines {
 public:
  Lines(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  // Moves to the next line; false at the end of the text, where line() is empty.
  bool next();
  // The same, past lines that are blank or start with '%'.
  bool next_with_content();

  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }  // of line(), from 1
  std::int64_t bytes_left() const { return static_cast<std::int64_t>(text_.size() - next_begin_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(text_.size()); }

  // Throws Error "<name>:<line>: <message>". `number` 0: the line we are at.
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput,
                         std::int64_t number = 0) const;

 private:
  std::string_view text_, name_, line_;
  std::size_t next_begin_ = 0;
  std::int64_t number_ = 0;
};

// Takes the next word off the front of `line`; words stand between white space and, when asked for,
// commas. Empty when there is none.
std::string_view take_word(std::string_view& line, bool commas_too = false);

// What a number must be.
struct WholeNumber {
  std::string_view what;  // for the message: "row", "number of columns"
  std::int64_t least = 0, most = 0;
};

// `word` as a whole number inside the range, else lines.fail() with word and range. A leading '+'
// is allowed.
std::int64_t whole_number(const Lines& lines, std::string_view word, const WholeNumber& expected);

// `word` as a double: decimal or scientific, "inf" and "nan" too; a number beyond the range of
// double is refused.
double real_number(const Lines& lines, std::string_view word, std::string_view what);

// `word` made fit for a message: quoted, cut after 24 bytes, bytes that do not print as \xNN.
std::string quoted(std::string_view word);

// Refuses sizes that would need more memory than the file's length justifies: a dimension may be at
// most 2^31 - 1, and at most max(2^20, 16 * bytes of the file), so that pointer arrays stay below
// 128 times the file. Error{LimitExceeded}.
void check_sizes_against_file(const Lines& lines, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::io::internal
