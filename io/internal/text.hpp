#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/io/read_options.hpp"

namespace tessera::io::internal {

// Reads a text line by line, for readers whose errors name the line. Lines end with LF, CRLF or the
// end of the text. The object copies nothing; the text must outlive it.
class Lines {
 public:
  // A text may be a piece of a longer one: `lines_before` and `bytes_after` are what stands before
  // and after it.
  Lines(std::string_view text, std::string_view name, std::int64_t lines_before = 0,
        std::int64_t bytes_after = 0)
      : text_(text), name_(name), number_(lines_before), bytes_after_(bytes_after) {}

  // Moves to the next line. Returns false at the end of the text, where line() is empty.
  bool next();

  // Moves to the next line that is not blank and does not start with '%', as next() does.
  bool next_with_content();

  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }  // of line(), from 1
  std::int64_t bytes_left() const { return bytes() - static_cast<std::int64_t>(next_begin_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(text_.size()) + bytes_after_; }

  // Throws Error{code} "<name>:<line>: <message>". `number` is the number of the line, or 0 for the
  // current line.
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput,
                         std::int64_t number = 0) const;

 private:
  std::string_view text_, name_, line_;
  std::size_t next_begin_ = 0;
  std::int64_t number_ = 0;
  std::int64_t bytes_after_ = 0;
};

// Returns whether `c` is white space of the C locale.
bool is_blank(char c);

// Removes the next word from the front of `line` and returns it, or an empty word if there is none.
// White space separates words and, if `commas_too` is true, commas do too.
std::string_view take_word(std::string_view& line, bool commas_too = false);

// The legal range of a number, with its meaning.
struct WholeNumber {
  std::string_view what;  // for the message: "row", "number of columns"
  std::int64_t least = 0, most = 0;
};

// Store `word` as a whole number, or as a double: decimal or scientific, "inf" and "nan" too. A
// leading '+' is allowed. Return false for other words and for numbers beyond the range of the
// type, whose value is then undefined.
bool parse_whole(std::string_view word, std::int64_t& value);
bool parse_real(std::string_view word, double& value, Precision precision = Precision::Double);

// Returns false for a finite number that is none in that precision.
bool fits(double value, Precision precision);

// The end of a message about a number that does not fit.
inline constexpr std::string_view kBeyondFloats =
    "it is beyond the numbers of 32 bits, which end at 3.4e38; divide all values by one number";

// The whole numbers that a double holds exactly are those up to this magnitude.
constexpr std::int64_t kMostExact = std::int64_t{1} << 53;

// Returns the legal range of a whole number for a message, which is empty if least > most.
std::string legal_whole(std::int64_t least, std::int64_t most);

// Returns `word` as a whole number. Calls lines.fail() with the word and the range if it is not one
// or is out of range. A leading '+' is allowed.
std::int64_t whole_number(const Lines& lines, std::string_view word, const WholeNumber& expected);

// Returns `word` as a double: decimal or scientific, "inf" and "nan" too. Calls lines.fail() for
// other words and for a number beyond the range of the precision.
double real_number(const Lines& lines, std::string_view word, std::string_view what,
                   Precision precision = Precision::Double);

// Returns `word` in quotes for a message, cut after 24 bytes. Bytes that do not print are written
// as \xNN.
std::string quoted(std::string_view word);

// Returns the rows or columns that a file of `bytes` may declare: max(2^20, 16 * bytes), and
// 2^31 - 1 at most, so that pointer arrays stay below 128 times the file.
std::int64_t most_lines(std::int64_t bytes);

// Throws Error{LimitExceeded} for more rows or columns than most_lines of the file.
void check_sizes_against_file(const Lines& lines, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::io::internal
