#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/problem.hpp"

// Tables of the figures of many plans or runs, as text, CSV, JSON and a page.
namespace tessera::study {

// The words of a note on planned costs that say which sums the dense layer has.
inline constexpr const char* kDenseSums = "; dense with its fastest sums, half for halves";

// A figure, a name, or nothing.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

// Returns the cell of a value that may be missing.
template <class T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

// A figure of a table: its name in JSON and its heading.
struct Column {
  std::string key;         // of the member in JSON, with the unit
  std::string title = {};  // heading of the text and of the page
  int decimals = -1;       // of the text; -1: as many as the number has
  double scale = 1;        // from the figure in JSON to the one that people read
  int width = 14;          // of the text; 0: not in a line of the text
};

// A chart of some columns of a table.
struct Chart {
  // The form of a chart.
  enum class Kind { Bars, Lines };
  Kind kind = Kind::Lines;
  std::string label;
  std::string x;               // key of the column along the axis
  std::vector<std::string> y;  // keys of the columns that are drawn
  // Keys of the columns whose values split the rows into lines.
  std::vector<std::string> series = {};
  bool is_log = false;  // x is a number on a logarithmic axis; else names
  // A horizontal line: its name and its height.
  std::optional<std::pair<std::string, double>> level = {};
};

// Rows of figures with their columns, and perhaps a chart of them.
struct Table {
  std::string key;         // of the array in JSON
  std::string title = {};  // heading of the page
  std::string note = {};   // a sentence under that heading; may be empty
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  // [row][column]
  std::optional<Chart> chart = {};
};

// The result of a study: facts, tables and a verdict, for text, JSON and a page alike.
struct Report {
  std::string name;           // of the command
  std::string title = {};     // heading of the page
  std::string subtitle = {};  // the layer and the machine
  bool is_complete = true;
  std::vector<std::pair<std::string, Cell>> facts = {};  // members of the JSON
  std::vector<Table> tables = {};
  std::string verdict = {};  // empty: none
};

// Returns a table as lines of aligned columns, or as CSV with a heading. A text in a column with
// the key "note" follows its line.
std::string table_text(const Table& table);
std::string table_csv(const Table& table);

// Returns a row as a line of CSV. A cell without a value is empty.
std::string csv_line(const std::vector<Cell>& row);

// Returns the tables of a study as CSV, with an empty line between two of them.
std::string to_csv(const Report& study);

// Returns a study as JSON: schema_version, study, status, the facts, an array of objects for each
// table, and the verdict.
std::string to_json(const Report& study);

// Returns the document from which tools/page makes an HTML page: the JSON of the study, how its
// tables are shown, and the date of the page.
std::string page_document(const Report& study, const std::string& date);

// Returns the sizes and types of the layer, one of which a study may vary: "1024 outputs, 768
// inputs, batch 4; half, sums float".
std::string layer_words(const Problem& problem);

}  // namespace tessera::study
