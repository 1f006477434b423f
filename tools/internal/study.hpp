#pragma once

#include <string>

#include "tessera/base/problem.hpp"

namespace CLI {
class App;
}

namespace tessera::tools::internal {

// The output of a study, which is a table of many plans, besides its text.
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

// Prints `text`, or `json` if that was requested, and writes the page of `json`. Returns the exit
// code of the program: after Ctrl-C it is 130, and a line on stderr says that the study is not
// complete.
int write_study(const StudyOutput& output, const std::string& text, const std::string& json);

}  // namespace tessera::tools::internal
