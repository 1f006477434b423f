#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tessera/io/duplicates.hpp"
#include "tessera/io/internal/first_page.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/row_order.hpp"

namespace tessera::io {
namespace {

using internal::Lines;
using internal::quoted;
using internal::take_word;

enum class Field { Real, Integer, Pattern };
enum class Symmetry { General, Symmetric, Skew };

struct Header {
  bool is_array = false;
  Field field = Field::Real;
  Symmetry symmetry = Symmetry::General;
  std::int64_t rows = 0, cols = 0;
  std::int64_t entries = 0;  // stored in the file
};

// The entries in the order of the file, mirror images included; one array per field.
struct Entries {
  std::vector<std::int32_t> row, col;  // from 0
  std::vector<double> value;
  std::vector<std::int64_t> line;  // of the file

  void add(std::int64_t r, std::int64_t c, double v, std::int64_t l) {
    row.push_back(static_cast<std::int32_t>(r));
    col.push_back(static_cast<std::int32_t>(c));
    value.push_back(v);
    line.push_back(l);
  }
};

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

Field parse_field(const Lines& lines, std::string_view word) {
  const std::string field = lower(word);
  if (field == "real" || field == "double") return Field::Real;
  if (field == "integer") return Field::Integer;
  if (field == "pattern") return Field::Pattern;
  if (field == "complex")
    lines.fail(
        "the values are complex; only real, integer and pattern files can be read (split "
        "real and imaginary parts into two files)");
  lines.fail(fmt::format("the field is {}; it must be real, integer or pattern", quoted(word)));
}

Symmetry parse_symmetry(const Lines& lines, std::string_view word) {
  const std::string symmetry = lower(word);
  if (symmetry == "general") return Symmetry::General;
  if (symmetry == "symmetric") return Symmetry::Symmetric;
  if (symmetry == "skew-symmetric") return Symmetry::Skew;
  if (symmetry == "hermitian")
    lines.fail(
        "the matrix is hermitian, which only complex values can be; only general, symmetric "
        "and skew-symmetric files can be read");
  lines.fail(fmt::format("the symmetry is {}; it must be general, symmetric or skew-symmetric",
                         quoted(word)));
}

void refuse_extra(const Lines& lines, std::string_view rest, std::string_view after) {
  const std::string_view extra = take_word(rest);
  if (!extra.empty()) lines.fail(fmt::format("{} follows {}; remove it", quoted(extra), after));
}

Header read_banner(Lines& lines) {
  constexpr std::string_view kExpected =
      "the first line must be: %%MatrixMarket matrix coordinate real general";
  if (!lines.next()) lines.fail(fmt::format("the file is empty; {}", kExpected));
  std::string_view rest = lines.line();
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) word = take_word(rest);
  if (lower(words[0]) != "%%matrixmarket")
    lines.fail(fmt::format("the file starts with {}; {}", quoted(words[0]), kExpected));
  if (lower(words[1]) != "matrix")
    lines.fail(fmt::format("the object is {}; only \"matrix\" can be read", quoted(words[1])));
  Header header;
  const std::string format = lower(words[2]);
  if (format != "coordinate" && format != "array")
    lines.fail(fmt::format("the format is {}; it must be coordinate or array", quoted(words[2])));
  header.is_array = format == "array";
  header.field = parse_field(lines, words[3]);
  header.symmetry = parse_symmetry(lines, words[4]);
  refuse_extra(lines, rest, "the banner");
  if (header.field == Field::Pattern && (header.is_array || header.symmetry == Symmetry::Skew))
    lines.fail("a pattern has no values, so it cannot be an array or skew-symmetric");
  return header;
}

// Returns the number of entries in an array file: all, or one triangle with or without the
// diagonal.
std::int64_t array_entries(const Header& header) {
  const std::int64_t n = header.rows;
  switch (header.symmetry) {
    case Symmetry::General:
      return header.rows * header.cols;
    case Symmetry::Symmetric:
      return n * (n + 1) / 2;
    case Symmetry::Skew:
      return n * (n - 1) / 2;
  }
  return 0;
}

// Fails if the rest of the file is too short for the declared entries, so that no memory is
// reserved for them.
void check_entries_against_file(const Lines& lines, const Header& header) {
  const bool has_value = header.field != Field::Pattern;
  const std::int64_t least_bytes = (header.is_array ? 0 : 4) + (has_value ? 2 : 0);
  // The last line may have no newline.
  const std::int64_t most = (lines.bytes_left() + 1) / least_bytes;
  if (header.entries > most)
    lines.fail(
        fmt::format("{} entries are declared; the {} bytes that follow hold {} at most: the "
                    "file was cut off or the number is wrong",
                    header.entries, lines.bytes_left(), most));
}

void read_sizes(Lines& lines, Header& header) {
  if (!lines.next_with_content()) lines.fail("the file ends before its line of sizes");
  std::string_view rest = lines.line();
  const auto take = [&](std::string_view what) {
    return whole_number(lines, take_word(rest), {what, 0, INT64_MAX});
  };
  header.rows = take("number of rows");
  header.cols = take("number of columns");
  if (!header.is_array) header.entries = take("number of entries");
  refuse_extra(lines, rest, "the sizes");
  internal::check_sizes_against_file(lines, header.rows, header.cols);
  if (header.symmetry != Symmetry::General && header.rows != header.cols)
    lines.fail(fmt::format("{} rows and {} columns; a symmetric matrix must be square", header.rows,
                           header.cols));
  if (header.is_array) header.entries = array_entries(header);
  if (header.entries > header.rows * header.cols)
    lines.fail(fmt::format("{} entries do not fit in {} rows and {} columns; the most is {}",
                           header.entries, header.rows, header.cols, header.rows * header.cols));
  check_entries_against_file(lines, header);
}

void next_entry_line(Lines& lines, const Header& header, std::int64_t entries_read) {
  if (!lines.next_with_content())
    lines.fail(fmt::format("the file ends after {} of {} entries", entries_read, header.entries));
}

double read_value(const Lines& lines, Field field, std::string_view word) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;  // whole numbers a double holds exactly
  switch (field) {
    case Field::Real:
      return real_number(lines, word, "value");
    case Field::Integer:
      return static_cast<double>(whole_number(lines, word, {"value", -kExact, kExact}));
    case Field::Pattern:
      break;
  }
  return 1;
}

// Adds an entry and, in a symmetric matrix, its mirror image.
void add_entry(Entries& entries, Symmetry symmetry, std::int64_t row, std::int64_t col,
               std::pair<double, std::int64_t> value_and_line) {
  const auto [value, line] = value_and_line;
  entries.add(row, col, value, line);
  if (symmetry != Symmetry::General && row != col)
    entries.add(col, row, symmetry == Symmetry::Skew ? -value : value, line);
}

Entries read_coordinates(Lines& lines, const Header& header) {
  Entries entries;
  const std::size_t most =
      static_cast<std::size_t>(header.entries) * (header.symmetry == Symmetry::General ? 1 : 2);
  entries.row.reserve(most), entries.col.reserve(most);
  entries.value.reserve(most), entries.line.reserve(most);
  for (std::int64_t i = 0; i < header.entries; ++i) {
    next_entry_line(lines, header, i);
    std::string_view rest = lines.line();
    const std::int64_t row = whole_number(lines, take_word(rest), {"row", 1, header.rows}) - 1;
    const std::int64_t col = whole_number(lines, take_word(rest), {"column", 1, header.cols}) - 1;
    const double value =
        header.field == Field::Pattern ? 1 : read_value(lines, header.field, take_word(rest));
    refuse_extra(lines, rest, "the entry");
    if (header.symmetry == Symmetry::Skew && row == col)
      lines.fail(
          fmt::format("row {}, column {} is on the diagonal, which is zero and which a "
                      "skew-symmetric file must not store",
                      row + 1, col + 1));
    add_entry(entries, header.symmetry, row, col, {value, lines.number()});
  }
  return entries;
}

// Reads the values column by column. A symmetric file has only those on and below the diagonal, a
// skew-symmetric file only those below it.
Entries read_array(Lines& lines, const Header& header) {
  Entries entries;
  std::int64_t read = 0;
  for (std::int64_t col = 0; col < header.cols; ++col) {
    const std::int64_t first = header.symmetry == Symmetry::General     ? 0
                               : header.symmetry == Symmetry::Symmetric ? col
                                                                        : col + 1;
    for (std::int64_t row = first; row < header.rows; ++row) {
      next_entry_line(lines, header, read++);
      std::string_view rest = lines.line();
      const double value = read_value(lines, header.field, take_word(rest));
      refuse_extra(lines, rest, "the value");
      if (value != 0) add_entry(entries, header.symmetry, row, col, {value, lines.number()});
    }
  }
  return entries;
}

// Returns the entry of the file that each value of the matrix is, or nothing if both have one
// order. An entry and its mirror image are neighbours with one line number.
std::vector<std::int64_t> entries_of_values(const Entries& entries,
                                            const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> stored(entries.line.size());
  for (std::size_t i = 1; i < stored.size(); ++i)
    stored[i] = stored[i - 1] + (entries.line[i] != entries.line[i - 1]);
  if (std::is_sorted(order.begin(), order.end()) &&
      (stored.empty() || stored.back() + 1 == std::ssize(stored)))
    return {};
  std::vector<std::int64_t> result;
  result.reserve(order.size());
  for (const std::int64_t i : order) result.push_back(stored[std::size_t(i)]);
  return result;
}

// Returns the matrix with places that are given twice added up.
ReadMatrix summed(const Header& header, const Entries& entries) {
  sparse::Coo<double> all;
  all.rows = header.rows;
  all.cols = header.cols;
  all.row.assign(entries.row.begin(), entries.row.end());
  all.col.assign(entries.col.begin(), entries.col.end());
  all.values.assign(entries.value.begin(), entries.value.end());
  ReadMatrix result{
      sparse::to_csr(all, sparse::Duplicates::Sum), header.field != Field::Pattern, {}};
  if (!result.has_values) std::ranges::fill(result.matrix.values, 1.0);
  return result;
}

ReadMatrix sorted(const Lines& lines, const Header& header, const Entries& entries) {
  sparse::RowOrder by_row = sparse::sort_by_row(header.rows, entries.row, entries.col);
  if (const auto twins = sparse::find_duplicate(by_row, entries.col)) {
    const auto [first, again] = *twins;
    lines.fail(fmt::format("row {}, column {} is given twice{}, first on line {}; drop one or add "
                           "them up",
                           entries.row[again] + 1, entries.col[again] + 1,
                           header.symmetry == Symmetry::General ? "" : " (mirrored or not)",
                           entries.line[first]),
               ErrorCode::BadInput, entries.line[again]);
  }
  ReadMatrix result{{}, header.field != Field::Pattern, {}};
  if (!result.has_values) result.entry_of_value = entries_of_values(entries, by_row.order);
  sparse::Csr<double>& matrix = result.matrix;
  matrix.rows = header.rows, matrix.cols = header.cols;
  matrix.row_begin = std::move(by_row.row_begin);
  matrix.col.reserve(by_row.order.size());
  matrix.values.reserve(by_row.order.size());
  for (const std::int64_t i : by_row.order) {
    matrix.col.push_back(entries.col[i]);
    matrix.values.push_back(entries.value[i]);
  }
  return result;
}

}  // namespace

void internal::check_mtx_start(std::string_view start, std::string_view name) {
  Lines lines(start, name);
  read_banner(lines);
}

ReadMatrix read_mtx(std::string_view text, std::string_view name) {
  return read_mtx(text, name, sparse::Duplicates::Refuse);
}

ReadMatrix read_mtx(std::string_view text, std::string_view name, sparse::Duplicates duplicates) {
  Lines lines(text, name);
  Header header = read_banner(lines);
  read_sizes(lines, header);
  const Entries entries =
      header.is_array ? read_array(lines, header) : read_coordinates(lines, header);
  if (lines.next_with_content())
    lines.fail(
        fmt::format("more text after the last of {} entries; remove it or correct the "
                    "number of entries",
                    header.entries));
  return duplicates == sparse::Duplicates::Sum ? summed(header, entries)
                                               : sorted(lines, header, entries);
}

}  // namespace tessera::io
