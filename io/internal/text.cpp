#include "tessera/io/internal/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

#include "tessera/base/file.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::io::internal {
namespace {

// Removes a leading '+', which std::from_chars does not accept.
std::string_view without_plus(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return word;
}

// Returns the reason why the whole word is not a number; no error if it is one.
template <class Number>
std::errc parse(std::string_view word, Number& value) {
  const std::string_view digits = without_plus(word);
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  return error == std::errc() && end != last ? std::errc::invalid_argument : error;
}

// Returns the reason why the word is no number of the precision. A float is rounded from the digits
// themselves: rounded from a double, a number just above the middle of two floats would become the
// lower one.
std::errc parse_real_as(std::string_view word, double& value, Precision precision) {
  if (precision == Precision::Double) return parse(word, value);
  float nearest = 0;
  std::errc error = parse(word, nearest);
  if (error == std::errc()) value = nearest;
  if (error != std::errc::result_out_of_range) return error;
  // The number is too large for a float, or so small that the nearest one is 0.
  error = parse(word, value);
  if (error == std::errc() && !fits(value, precision)) return std::errc::result_out_of_range;
  value = static_cast<float>(value);
  return error;
}

}  // namespace

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool parse_whole(std::string_view word, std::int64_t& value) {
  return parse(word, value) == std::errc();
}

bool parse_real(std::string_view word, double& value, Precision precision) {
  return parse_real_as(word, value, precision) == std::errc();
}

bool fits(double value, Precision precision) {
  return precision == Precision::Double || !std::isfinite(value) ||
         std::isfinite(static_cast<float>(value));
}

bool Lines::next() {
  if (next_begin_ >= text_.size()) {
    line_ = {};
    return false;
  }
  const char* begin = text_.data() + next_begin_;
  const std::size_t left = text_.size() - next_begin_;
  const void* end = std::memchr(begin, '\n', left);
  const std::size_t length =
      end == nullptr ? left : static_cast<std::size_t>(static_cast<const char*>(end) - begin);
  line_ = text_.substr(next_begin_, length);
  next_begin_ += length + (end == nullptr ? 0 : 1);
  ++number_;
  return true;
}

bool Lines::next_with_content() {
  while (next()) {
    const auto first = std::find_if_not(line_.begin(), line_.end(), is_blank);
    if (first != line_.end() && *first != '%') return true;
  }
  return false;
}

void Lines::fail(const std::string& message, ErrorCode code, std::int64_t number) const {
  throw_fault_of_file(
      code, fmt::format("{}:{}: {}", name_,
                        number == 0 ? std::max<std::int64_t>(number_, 1) : number, message));
}

std::string_view take_word(std::string_view& line, bool commas_too) {
  const auto separates = [commas_too](char c) { return is_blank(c) || (commas_too && c == ','); };
  std::size_t begin = 0;
  while (begin < line.size() && separates(line[begin])) ++begin;
  std::size_t end = begin;
  while (end < line.size() && !separates(line[end])) ++end;
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string legal_whole(std::int64_t least, std::int64_t most) {
  return least > most ? "no value is legal: the matrix has none"
                      : fmt::format("it must be a whole number in {}..{}", least, most);
}

std::int64_t whole_number(const Lines& lines, std::string_view word, const WholeNumber& expected) {
  std::int64_t value = 0;
  if (parse_whole(word, value) && value >= expected.least && value <= expected.most) return value;
  const std::string range = legal_whole(expected.least, expected.most);
  if (word.empty()) lines.fail(fmt::format("{} is missing; {}", expected.what, range));
  lines.fail(fmt::format("{} is {}; {}", expected.what, quoted(word), range));
}

double real_number(const Lines& lines, std::string_view word, std::string_view what,
                   Precision precision) {
  double value = 0;
  const std::errc error = parse_real_as(word, value, precision);
  if (error == std::errc()) return value;
  if (word.empty()) lines.fail(fmt::format("{} is missing; a number is needed here", what));
  if (error == std::errc::result_out_of_range && precision == Precision::Float)
    lines.fail(fmt::format("{} is {}; {}", what, quoted(word), kBeyondFloats));
  if (error == std::errc::result_out_of_range)
    lines.fail(fmt::format("{} is {}; it must be 0 or have a magnitude in 4.9e-324..1.8e308", what,
                           quoted(word)));
  lines.fail(fmt::format("{} is {}; it must be a number such as -1.5e-3", what, quoted(word)));
}

std::string quoted(std::string_view word) {
  constexpr std::size_t kMostShown = 24;
  std::string text = "\"";
  for (const char c : word.substr(0, kMostShown))
    if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text + (word.size() > kMostShown ? "...\"" : "\"");
}

std::int64_t most_lines(std::int64_t bytes) {
  constexpr std::int64_t kAlways = std::int64_t{1} << 20, kPerByte = 16;
  return std::min(sparse::kMaxBlocksAlong, std::max(kAlways, bytes * kPerByte));
}

void check_sizes_against_file(const Lines& lines, std::int64_t rows, std::int64_t cols) {
  const std::int64_t most = most_lines(lines.bytes());
  if (rows <= most && cols <= most) return;
  lines.fail(
      fmt::format("{} rows and {} columns; a file of {} bytes may declare at most {} of each "
                  "(drop empty rows and columns, or add them after reading)",
                  rows, cols, lines.bytes(), most),
      ErrorCode::LimitExceeded);
}

}  // namespace tessera::io::internal
