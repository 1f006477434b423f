#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/study/comparison.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kThreshold = 5;  // percent, as in tessera compare

struct ReportArguments {
  std::string saved, other, html;
};

// Returns the text of a saved report. Throws Error{BadInput} if it is not one that the page shows.
std::string load_report(const std::string& path) {
  const std::string text = load_text(path);
  const Json report = Json::parse(text, nullptr, false);
  for (const char* part : {"notes", "tool", "how", "configuration", "passes"})
    if (!report.is_object() || !report.contains(part) || !report.at(part).is_structured())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: not a report of schema_version {}; write one with tessera run "
                              "--json or --output-dir",
                              path, report::kReportSchemaVersion));
  static_cast<void>(study::read_compared(path, text));
  return text;
}

int make_page(const ReportArguments& a) {
  if (!a.other.empty()) {
    const study::Comparison comparison(study::read_compared(a.saved, load_text(a.saved)),
                                       study::read_compared(a.other, load_text(a.other)));
    write_results(a.html,
                  study_page(study::page_document(comparison.report(kThreshold), date_of_today())));
    return kOk;
  }
  write_results(a.html, report_page(load_report(a.saved), {.date = date_of_today()}));
  return kOk;
}

}  // namespace

void add_report_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "report",
      "Makes the page of a report that was saved as JSON. It shows what the file has: the map of "
      "tiles needs --report-tiles of the run, and the plans that came next are only on the page "
      "that the run itself writes.");
  command->footer(std::string(kExitCodes) +
                  "\nExamples: tessera report report.json --html report.html\n"
                  "          tessera report before.json after.json --html both.html");
  const auto a = std::make_shared<ReportArguments>();
  command->add_option("saved", a->saved, "report, written by tessera run --json")->required();
  command->add_option("other", a->other,
                      "second report or plan; the page then shows both side by side");
  require_writable_file(
      *command->add_option("--html", a->html, "the page to write")->type_name("FILE")->required());
  command->callback([a, &run] { run = [a] { return make_page(*a); }; });
}

}  // namespace tessera::tools
