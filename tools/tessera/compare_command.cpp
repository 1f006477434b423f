#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/runtime/report_json.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::inline v0::tools {
namespace {

using Json = nlohmann::ordered_json;

struct CompareArguments {
  std::string before, after;
  double threshold = 5;  // percent
};

// Figures of a report by name, in the order of the file.
using Figures = std::vector<std::pair<std::string, double>>;

Figures figures_of(const std::string& path) {
  const Json report = Json::parse(load_text(path), nullptr, false);
  try {
    if (report.at("schema_version") != runtime::kReportSchemaVersion)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: schema_version is {}; this program reads {}", path,
                              report.at("schema_version").dump(), runtime::kReportSchemaVersion));
    Figures figures;
    for (const char* key : {"cycles", "planned_cycles", "moved_bytes", "fullest_tile_bytes"})
      figures.emplace_back(std::string("total ") + key, report.at("total").at(key));
    for (const Json& pass : report.at("passes"))
      for (const Json& phase : pass.at("phases")) {
        const std::string name = fmt::format("{} {} ", pass.at("pass").get<std::string>(),
                                             phase.at("phase").get<std::string>());
        for (const char* key : {"compute_cycles", "exchange_cycles", "moved_bytes"})
          figures.emplace_back(name + key, phase.at(key));
      }
    return figures;
  } catch (const Json::exception&) {
    throw Error(ErrorCode::BadInput,
                path + ": is no report; write one with sparse_fc_layer --json");
  }
}

double percent(double before, double after) {
  if (before == after) return 0;
  return before == 0 ? 100 : 100 * (after - before) / before;
}

int compare(const CompareArguments& a) {
  const Figures before = figures_of(a.before), after = figures_of(a.after);
  std::string text =
      fmt::format("{:<44}{:>16}{:>16}{:>12}\n", "figure", "before", "after", "change, %");
  double worst = 0;
  std::size_t same = 0;
  const auto find = [](const Figures& figures, const std::string& name) {
    const auto at = std::find_if(figures.begin(), figures.end(),
                                 [&](const auto& f) { return f.first == name; });
    return at == figures.end() ? 0.0 : at->second;
  };
  Figures all = before;
  for (const auto& figure : after)
    if (std::none_of(before.begin(), before.end(),
                     [&](const auto& f) { return f.first == figure.first; }))
      all.emplace_back(figure.first, 0.0);
  for (const auto& [name, value] : all) {
    const double now = find(after, name), change = percent(value, now);
    worst = std::max(worst, name == "total cycles" || name == "total moved_bytes" ? change : 0);
    if (change == 0)
      ++same;
    else
      text += fmt::format("{:<44}{:>16}{:>16}{:>+12.2f}\n", name, value, now, change);
  }
  text += fmt::format("{} figures are the same; total cycles and bytes may grow by {} %: {}\n",
                      same, a.threshold, worst > a.threshold ? "MORE" : "ok");
  print_results(text);
  return worst > a.threshold ? kCheckFailed : kOk;
}

}  // namespace

void add_compare_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "Two reports in JSON: what changed. Exit 1 when total cycles or bytes grew more "
      "than the threshold.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera compare before.json after.json --threshold 2");
  const auto a = std::make_shared<CompareArguments>();
  command->add_option("before", a->before, "report of sparse_fc_layer --json")->required();
  command->add_option("after", a->after, "the other report")->required();
  command->add_option("--threshold", a->threshold, "growth in % that is accepted")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->callback([a, &run] { run = [a] { return compare(*a); }; });
}

}  // namespace tessera::inline v0::tools
