#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/internal/numbers.hpp"
#include "tessera/tools/tessera/commands.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

struct CompareArguments {
  std::string before, after;
  double threshold = 5;  // percent
};

// The figures of a report by name, in the order of the file.
using Figures = std::vector<std::pair<std::string, double>>;

struct Report {
  std::string machine;
  bool is_measured = false;  // on a host; else modelled
  Figures figures;           // cycles and bytes; empty for a measured report
  Figures times;             // figures that every report has
};

void read_times(const Json& report, Report& read) {
  const double clock =
      read.is_measured ? 1 : report.at("planned").at("machine").at("clock_hz").get<double>();
  const auto microseconds = [](double seconds) { return std::round(seconds * 1e9) / 1e3; };
  read.times.emplace_back("total microseconds", microseconds(report.at("total").at("seconds")));
  read.times.emplace_back("total useful_flops", report.at("total").at("useful_flops"));
  for (const Json& pass : report.at("passes"))
    read.times.emplace_back(
        pass.at("pass").get<std::string>() + " microseconds",
        microseconds(read.is_measured ? pass.value("seconds", 0.0)
                                      : pass.at("cycles").get<double>() / clock));
}

Report read_report(const std::string& path) {
  const Json report = Json::parse(load_text(path), nullptr, false);
  try {
    if (report.at("schema_version") != report::kReportSchemaVersion)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: schema_version is {}; this program reads {}", path,
                              report.at("schema_version").dump(), report::kReportSchemaVersion));
    Report read;
    read.is_measured = report.contains("host");
    read.machine = read.is_measured ? report.at("host").at("cpu")
                                    : report.at("planned").at("machine").at("name");
    read_times(report, read);
    if (read.is_measured) return read;
    Figures& figures = read.figures;
    for (const char* key : {"cycles", "planned_cycles", "moved_bytes", "fullest_tile_bytes"})
      figures.emplace_back(std::string("total ") + key, report.at("total").at(key));
    for (const Json& pass : report.at("passes"))
      for (const Json& phase : pass.at("phases")) {
        const std::string name = fmt::format("{} {} ", pass.at("pass").get<std::string>(),
                                             phase.at("phase").get<std::string>());
        for (const char* key : {"compute_cycles", "exchange_cycles", "moved_bytes"})
          figures.emplace_back(name + key, phase.at(key));
      }
    return read;
  } catch (const Json::exception&) {
    throw Error(ErrorCode::BadInput,
                path + ": this is not a report; write one with sparse_fc_layer --json");
  }
}

double percent(double before, double after) {
  if (before == after) return 0;
  return before == 0 ? 100 : 100 * (after - before) / before;
}

// Returns a line that names the kinds of both reports. A measured and a modelled report can only be
// compared by their times, and only as far as the model is right.
std::string kinds(const Report& before, const Report& after) {
  const auto kind = [](const Report& r) {
    return fmt::format("{} on {}", r.is_measured ? "measured" : "modelled", r.machine);
  };
  return fmt::format("before: {}; after: {}\n", kind(before), kind(after));
}

int compare(const CompareArguments& a) {
  const Report first = read_report(a.before), second = read_report(a.after);
  const bool by_time = first.is_measured || second.is_measured;
  const Figures& before = by_time ? first.times : first.figures;
  const Figures& after = by_time ? second.times : second.figures;
  std::string text = by_time ? kinds(first, second) : std::string();
  text += fmt::format("{:<44}{:>16}{:>16}{:>12}\n", "figure", "before", "after", "change, %");
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
    const bool is_held =
        name == "total cycles" || name == "total moved_bytes" || name == "total microseconds";
    worst = std::max(worst, is_held ? change : 0);
    if (change == 0)
      ++same;
    else
      text += fmt::format("{:<44}{:>16}{:>16}{:>+12.2f}\n", name, value, now, change);
  }
  text += fmt::format("{} figures are the same; total {} may grow by {} %: {}\n", same,
                      by_time ? "time" : "cycles and bytes", a.threshold,
                      worst > a.threshold ? "MORE" : "ok");
  print_text(text);
  return worst > a.threshold ? kCheckFailed : kOk;
}

}  // namespace

void add_compare_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("compare",
                         "Compares two JSON reports and prints what changed. Exits with 1 if the "
                         "total cycles or bytes grew by more than the threshold; for reports of "
                         "this computer (--machine host), if the total time did.");
  command->footer(std::string(internal::kExitCodes) +
                  "\nExample: tessera compare before.json after.json --threshold 2");
  const auto a = std::make_shared<CompareArguments>();
  command->add_option("before", a->before, "first report, written by sparse_fc_layer --json")
      ->required();
  command->add_option("after", a->after, "second report, compared with the first")->required();
  internal::require_number(
      command->add_option("--threshold", a->threshold, "accepted growth in percent"), 0)
      ->capture_default_str();
  command->callback([a, &run] { run = [a] { return compare(*a); }; });
}

}  // namespace tessera::tools
