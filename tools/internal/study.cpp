#include "tessera/tools/internal/study.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/command_line.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/report_page.hpp"

namespace tessera::tools::internal {

std::string layer_words(const Problem& p) {
  return fmt::format("{} outputs, {} inputs, batch {}; {}, sums {}", p.size.x, p.size.y, p.size.z,
                     to_string(p.data_type), to_string(p.partials_type));
}

void add_study_options(CLI::App& app, StudyOutput& output) {
  app.add_flag("--json", output.json, "print the figures as JSON");
  require_writable_file(
      *app.add_option("--html", output.html, "write the table and the chart as one HTML page")
           ->type_name("FILE"));
}

int write_study(const StudyOutput& output, const std::string& text, const std::string& json) {
  const EndsByItself reporting;
  print_results(output.json ? json : text);
  if (!output.html.empty()) write_results(output.html, study_page(json));
  if (!is_interrupted()) return kOk;
  print_message("tessera: interrupted; the results so far are reported\n");
  return interrupted_exit_code();
}

}  // namespace tessera::tools::internal
