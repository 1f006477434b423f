#include "tessera/tools/tessera/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tessera/base/error.hpp"

namespace tessera::tools {
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

// Takes the first line off `text`.
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
    throw Error(ErrorCode::BadInput, fmt::format("{}:1: there is no column {}; the columns are {}",
                                                 name, column, fmt::join(header.cells, ", ")));
  return place;
}

Table read_table(std::string_view text, std::string_view name) {
  if (text.empty())
    throw Error(ErrorCode::BadInput, fmt::format("{}:1: there is no header line", name));
  Table table{name, next_line(text), {}};
  std::set<std::string_view> columns;
  for (const std::string_view column : table.header.cells)
    if (!columns.insert(column).second)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}:1: column {} is there twice; keep one", name, column));
  while (!text.empty()) {
    table.rows.push_back(next_line(text));
    if (table.rows.back().cells.size() != table.header.cells.size())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}:{}: the row has {} cells; it must have {}, as the header", name,
                              table.rows.size() + 1, table.rows.back().cells.size(),
                              table.header.cells.size()));
  }
  return table;
}

}  // namespace tessera::tools
