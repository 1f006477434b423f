#include "tessera/tools/options/study_output.hpp"

#include <CLI/CLI.hpp>

#include "tessera/base/printable.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::tools {

void add_figures_options(CLI::App& app, StudyOutput& output) {
  app.add_flag("--csv", output.csv, "print the tables as CSV")
      ->excludes(app.add_flag("--json", output.json, "print the figures as JSON"));
}

void add_study_options(CLI::App& app, StudyOutput& output) {
  add_figures_options(app, output);
  require_writable_file(
      *app.add_option("--html", output.html, "write the tables and charts as one HTML page")
           ->type_name("FILE"));
}

std::string in_form(const StudyOutput& output, const study::Report& study, const std::string& text,
                    const std::string& json) {
  if (output.csv) return study::to_csv(study);
  if (!output.json) return printable(text, LineEnds::Keep);
  return json.empty() ? study::to_json(study) : json;
}

int write_study(const StudyOutput& output, const study::Report& study, const std::string& text,
                const std::string& json) {
  const EndsByItself reporting;
  print_results(in_form(output, study, text, json));
  if (!output.html.empty())
    write_results(output.html, study_page(study::page_document(study, date_of_today())));
  if (!is_interrupted()) return kOk;
  print_message("tessera: interrupted; the results so far are reported\n");
  return interrupted_exit_code();
}

}  // namespace tessera::tools
