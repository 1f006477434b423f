#include "tessera/io/internal/mtx_line.hpp"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace tessera::io::internal {
namespace {

double read_value(const Lines& lines, const MtxHeader& header, std::string_view word) {
  switch (header.field) {
    case MtxField::Real:
      return real_number(lines, word, "value", header.precision);
    case MtxField::Integer:
      return static_cast<double>(whole_number(lines, word, {"value", -kMostExact, kMostExact}));
    case MtxField::Pattern:
      break;
  }
  return 1;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

void skip_spaces(const char*& at, const char* end) {
  while (at < end && is_space(*at)) ++at;
}

// Takes a number from 1 up to `most` and returns it from 0 on; -1 if there is none, or if it has
// more digits than any number that programs write.
std::int32_t take_index(const char*& at, const char* end, std::int64_t most) {
  constexpr std::int64_t kLongest = 10;  // digits of 2^31 - 1
  skip_spaces(at, end);
  const char* const first = at;
  std::int64_t number = 0;
  for (; at < end && at - first <= kLongest; ++at) {
    const auto digit = static_cast<unsigned char>(*at - '0');
    if (digit > 9) break;
    number = number * 10 + digit;
  }
  const bool is_longer = at - first > kLongest;
  return number >= 1 && number <= most && !is_longer ? static_cast<std::int32_t>(number - 1) : -1;
}

template <class Number>
bool take_number(const char*& at, const char* end, Number& number) {
  const auto [stop, error] = std::from_chars(at, end, number);
  at = stop;
  return error == std::errc();
}

bool take_value(const char*& at, const char* end, const MtxHeader& header, double& value) {
  skip_spaces(at, end);
  std::int64_t whole = 0;
  float nearest = 0;
  switch (header.field) {
    case MtxField::Real:
      if (header.precision == Precision::Double) return take_number(at, end, value);
      if (!take_number(at, end, nearest)) return false;
      value = nearest;
      return true;
    case MtxField::Integer:
      if (!take_number(at, end, whole) || whole < -kMostExact || whole > kMostExact) return false;
      value = static_cast<double>(whole);
      return true;
    case MtxField::Pattern:
      break;
  }
  return true;
}

bool take_place(const char*& at, const char* end, const MtxHeader& header, MtxEntry& entry) {
  entry.row = take_index(at, end, header.rows);
  if (entry.row < 0) return false;
  entry.col = take_index(at, end, header.cols);
  const bool is_forbidden = header.symmetry == MtxSymmetry::Skew && entry.row == entry.col;
  return entry.col >= 0 && !is_forbidden && (!header.has_values() || (at < end && is_space(*at)));
}

}  // namespace

MtxEntry read_mtx_entry(const Lines& lines, const MtxHeader& header) {
  std::string_view rest = lines.line();
  if (header.is_array) {
    const double value = read_value(lines, header, take_word(rest));
    refuse_extra(lines, rest, "the value");
    return {0, 0, value};
  }
  const std::int64_t row = whole_number(lines, take_word(rest), {"row", 1, header.rows}) - 1;
  const std::int64_t col = whole_number(lines, take_word(rest), {"column", 1, header.cols}) - 1;
  const double value = header.has_values() ? read_value(lines, header, take_word(rest)) : 1;
  refuse_extra(lines, rest, "the entry");
  if (header.symmetry == MtxSymmetry::Skew && row == col)
    lines.fail(
        fmt::format("row {}, column {} is on the diagonal, which is zero and which a "
                    "skew-symmetric file must not store",
                    row + 1, col + 1));
  return {static_cast<std::int32_t>(row), static_cast<std::int32_t>(col), value};
}

bool take_plain_entry(const char*& at, const char* end, const MtxHeader& header, MtxEntry& entry) {
  const char* next = at;
  if (!header.is_array && !take_place(next, end, header, entry)) return false;
  if (!take_value(next, end, header, entry.value)) return false;
  skip_spaces(next, end);
  if (next < end && *next++ != '\n') return false;
  at = next;
  return true;
}

}  // namespace tessera::io::internal
