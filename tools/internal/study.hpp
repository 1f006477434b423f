#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/problem.hpp"

namespace CLI {
class App;
}

// Studies: tables of the figures of many plans or runs, as text, CSV, JSON and a page.
namespace tessera::tools::internal {

// The words of a note on planned costs that say which sums the dense layer has.
inline constexpr const char* kDenseSums = "; dense with its fastest sums, half for halves";

// A figure, a name, or nothing.
using StudyCell = std::variant<std::monostate, std::int64_t, double, std::string>;

// Returns the cell of a value that may be missing.
template <class T>
StudyCell cell_of(const std::optional<T>& value) {
  return value ? StudyCell(*value) : StudyCell();
}

struct StudyColumn {
  std::string key;    // of the member in JSON, with the unit
  std::string title;  // heading of the text and of the page
  int decimals = -1;  // of the text; -1: as many as the number has
  double scale = 1;   // from the figure in JSON to the one that people read
  int width = 14;     // of the text; 0: not in a line of the text
};

// A chart of some columns of a table.
struct StudyChart {
  enum class Kind { Bars, Lines };
  Kind kind = Kind::Lines;
  std::string label;
  std::string x;                    // key of the column along the axis
  std::vector<std::string> y;       // keys of the columns that are drawn
  std::vector<std::string> series;  // keys of the columns whose values split the rows into lines
  bool is_log = false;              // x is a number on a logarithmic axis; else names
  // A horizontal line: its name and its height.
  std::optional<std::pair<std::string, double>> level = {};
};

struct StudyTable {
  std::string key;    // of the array in JSON
  std::string title;  // heading of the page
  std::string note;   // a sentence under that heading; may be empty
  std::vector<StudyColumn> columns;
  std::vector<std::vector<StudyCell>> rows;  // [row][column]
  std::optional<StudyChart> chart = {};
};

struct Study {
  std::string name;      // of the command
  std::string title;     // heading of the page
  std::string subtitle;  // the layer and the machine
  bool is_complete = true;
  std::vector<std::pair<std::string, StudyCell>> facts;  // members of the JSON
  std::vector<StudyTable> tables;
  std::string verdict;  // empty: none
};

// Returns a table as lines of aligned columns, or as CSV with a heading. A text in a column with
// the key "note" follows its line.
std::string table_text(const StudyTable& table);
std::string table_csv(const StudyTable& table);

// Returns a study as JSON: schema_version, study, status, the facts, an array of objects for each
// table, and the verdict.
std::string study_json(const Study& study);

// Returns a study as an HTML page. Throws the error of report_page().
std::string study_page_of(const Study& study);

// The output of a study besides its text.
struct StudyOutput {
  bool json = false;
  std::string html;  // empty: no page

  bool wants_data() const { return json || !html.empty(); }
};

// Returns the sizes and types of the layer, one of which a study may vary: "1024 outputs, 768
// inputs, batch 4; half, sums float".
std::string layer_words(const Problem& problem);

// Adds --json and --html.
void add_study_options(CLI::App& app, StudyOutput& output);

// Prints `text`, or the JSON if that was requested, and writes the page. `json` is the JSON of a
// command that has a form of its own; empty: study_json(). Returns the exit code of the program:
// after Ctrl-C it is 130, and a line on stderr says that the study is not complete.
int write_study(const StudyOutput& output, const Study& study, const std::string& text,
                const std::string& json = {});

}  // namespace tessera::tools::internal
