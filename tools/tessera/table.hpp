#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::tools {

// One line of a tab-separated text, without its end.
struct TableLine {
  std::string_view text;
  std::string_view end;  // "\n", "\r\n", or nothing at the end of the text
  std::vector<std::string_view> cells;
};

// A tab-separated text with a header. Views into the text it was read from.
struct Table {
  std::string_view name;  // of the text, in messages
  TableLine header;
  std::vector<TableLine> rows;  // rows[i] is line i + 2

  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  // The place of a column in a row, or kAbsent.
  std::size_t find(std::string_view column) const;
  // The same; Error{BadInput} that lists the columns there are when it is absent.
  std::size_t need(std::string_view column) const;
};

// Every row has as many cells as the header, and no column is there twice; else Error{BadInput}
// with the place. O(text).
Table read_table(std::string_view text, std::string_view name);

}  // namespace tessera::tools
