#pragma once

#include <string>

#include "tessera/study/tables.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The output of a study besides its text.
struct StudyOutput {
  bool json = false;
  std::string html;  // empty: no page

  bool wants_data() const { return json || !html.empty(); }
};

// Adds --json and --html.
void add_study_options(CLI::App& app, StudyOutput& output);

// Prints `text`, or the JSON if that was requested, and writes the page. `json` is the JSON of a
// command that has a form of its own; empty: study::to_json(). Returns the exit code of the
// program: after Ctrl-C it is 130, and a line on stderr says that the study is not complete.
int write_study(const StudyOutput& output, const study::Report& study, const std::string& text,
                const std::string& json = {});

}  // namespace tessera::tools
