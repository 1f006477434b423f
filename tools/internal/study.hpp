#pragma once

#include <string>

#include "tessera/base/problem.hpp"

namespace CLI {
class App;
}

namespace tessera::tools::internal {

// Where a table of many plans goes beside the terminal.
struct StudyOutput {
  bool json = false;
  std::string html;  // empty: no page

  bool wants_data() const { return json || !html.empty(); }
};

// Sizes and types, of which a study may change one: "1024 outputs, 768 inputs, batch 4; half, sums
// float".
std::string layer_words(const Problem& problem);

// --json and --html.
void add_study_options(CLI::App& app, StudyOutput& output);

// Prints `text`, or `json` where that is asked for, and writes the page of `json`. What the program
// answers: 130 after Ctrl-C, and then a line on stderr says that the study is not whole.
int write_study(const StudyOutput& output, const std::string& text, const std::string& json);

}  // namespace tessera::tools::internal
