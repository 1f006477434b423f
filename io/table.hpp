#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::io {

// One line of a tab-separated text.
struct TableLine {
  std::string_view text;  // without the line end
  std::string_view end;   // "\n", "\r\n", or nothing at the end of the text
  std::vector<std::string_view> cells;
};

// A tab-separated text with a header, and lines that begin with # before the header. All members
// are views into the text that the table was read from.
struct Table {
  std::string_view name;      // of the text, in messages
  std::string_view comments;  // the lines before the header
  TableLine header;
  std::vector<TableLine> rows;
  std::size_t header_line = 1;  // rows[i] is line header_line + 1 + i

  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  // Returns the index of a column in a row, or kAbsent.
  std::size_t find(std::string_view column) const;

  // Returns the index of a column. Throws Error{BadInput}, which lists the columns, if it is
  // absent.
  std::size_t need(std::string_view column) const;
};

// Reads a table. Throws Error{BadInput} with the place if a row does not have as many cells as the
// header, or if a column occurs twice. O(text).
Table read_table(std::string_view text, std::string_view name);

// Reads the cells of one row. Throws Error{BadInput} "<name>:<line>: <column> is <value>; it must
// be <legal>" for a cell with an illegal value.
class RowReader {
 public:
  RowReader(const Table& table, std::size_t row) : table_(table), row_(row) {}

  std::string place() const;  // "<name>:<line>: "
  std::string_view cell(std::size_t column) const { return table_.rows[row_].cells[column]; }

  // Throws that error for a cell.
  [[noreturn]] void refuse(std::size_t column, std::string_view legal) const;

  // Returns a whole number in 1 .. most.
  std::int64_t count(std::size_t column, std::int64_t most) const;

  // Returns a number in 0 .. 1, which may be written as a fraction of two whole numbers such as
  // 1/16.
  double share(std::size_t column) const;

  // Returns a number above 0.
  double positive(std::size_t column) const;

 private:
  const Table& table_;
  std::size_t row_;
};

}  // namespace tessera::io
