#pragma once

#include <string>

#include "tessera/study/tables.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The output of a study besides its text.
struct StudyOutput {
  bool json = false, csv = false;
  std::string html;  // empty: no page

  bool wants_data() const { return json || !html.empty(); }
};

// Adds --json and --csv, or these and --html.
void add_figures_options(CLI::App& app, StudyOutput& output);
void add_study_options(CLI::App& app, StudyOutput& output);

// Returns `text`, or the JSON or the CSV if that was requested. `json` is the JSON of a command
// that has a form of its own; empty: study::to_json().
std::string in_form(const StudyOutput& output, const study::Report& study, const std::string& text,
                    const std::string& json = {});

// Prints `text`, or the JSON or the CSV if that was requested, and writes the page. Returns the
// exit code of the program: after Ctrl-C it is 130, and a line on stderr says that the study is not
// complete.
int write_study(const StudyOutput& output, const study::Report& study, const std::string& text,
                const std::string& json = {});

}  // namespace tessera::tools
