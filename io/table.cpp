#include "tessera/io/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tessera/base/error.hpp"

namespace tessera::io {
namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0;;) {
    const std::size_t tab = line.find('\t', begin);
    cells.push_back(line.substr(begin, tab - begin));
    if (tab == std::string_view::npos) return cells;
    begin = tab + 1;
  }
}

// Removes the first line from `text` and returns it.
TableLine next_line(std::string_view& text) {
  const std::size_t newline = text.find('\n');
  const std::size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
  std::string_view line = text.substr(0, size);
  text.remove_prefix(size);
  const std::size_t end = line.ends_with("\r\n") ? 2 : line.ends_with('\n') ? 1 : 0;
  TableLine result{line.substr(0, size - end), line.substr(size - end), {}};
  result.cells = cells_of(result.text);
  return result;
}

}  // namespace

std::size_t Table::find(std::string_view column) const {
  const auto found = std::ranges::find(header.cells, column);
  return found == header.cells.end() ? kAbsent : std::size_t(found - header.cells.begin());
}

std::size_t Table::need(std::string_view column) const {
  const std::size_t place = find(column);
  if (place == kAbsent)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}:{}: column {} is missing; the columns are {}", name, header_line,
                            column, fmt::join(header.cells, ", ")));
  return place;
}

Table read_table(std::string_view text, std::string_view name) {
  Table table{name, text, {}, {}};
  for (; text.starts_with('#'); ++table.header_line) next_line(text);
  table.comments.remove_suffix(text.size());
  if (text.empty())
    throw Error(ErrorCode::BadInput,
                fmt::format("{}:{}: the header line is missing", name, table.header_line));
  table.header = next_line(text);
  std::set<std::string_view> columns;
  for (const std::string_view column : table.header.cells)
    if (!columns.insert(column).second)
      throw Error(ErrorCode::BadInput, fmt::format("{}:{}: column {} appears twice; keep one", name,
                                                   table.header_line, column));
  while (!text.empty()) {
    table.rows.push_back(next_line(text));
    if (table.rows.back().cells.size() != table.header.cells.size())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}:{}: the row has {} cells; it must have {}, like the header", name,
                              table.header_line + table.rows.size(), table.rows.back().cells.size(),
                              table.header.cells.size()));
  }
  return table;
}

namespace {

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_fraction(std::string_view text, double& value) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return read_number(text, value);
  std::int64_t over = 0, under = 0;
  if (!read_number(text.substr(0, slash), over) || !read_number(text.substr(slash + 1), under))
    return false;
  value = double(over) / double(under);  // `under` 0 gives a value that share() refuses
  return true;
}

}  // namespace

std::string RowReader::place() const {
  return fmt::format("{}:{}: ", table_.name, table_.header_line + 1 + row_);
}

void RowReader::refuse(std::size_t column, std::string_view legal) const {
  constexpr std::size_t kLongest = 60;
  const std::string_view text = cell(column);
  throw Error(ErrorCode::BadInput,
              fmt::format("{}{} is \"{}{}\"; it must be {}", place(), table_.header.cells[column],
                          text.substr(0, kLongest), text.size() > kLongest ? "..." : "", legal));
}

std::int64_t RowReader::count(std::size_t column, std::int64_t most) const {
  std::int64_t value = 0;
  if (!read_number(cell(column), value) || value < 1 || value > most)
    refuse(column, fmt::format("a whole number in 1..{}", most));
  return value;
}

double RowReader::share(std::size_t column) const {
  double value = 0;
  if (!read_fraction(cell(column), value) || !(value >= 0 && value <= 1))
    refuse(column, "a number in 0..1");
  return value;
}

double RowReader::positive(std::size_t column) const {
  double value = 0;
  if (!read_number(cell(column), value) || !(value > 0 && value < 1e300))
    refuse(column, "a number above 0");
  return value;
}

}  // namespace tessera::io
