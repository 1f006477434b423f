#include "tessera/study/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/plan_notes.hpp"
#include "tessera/report/report_json.hpp"

namespace tessera::study {
namespace {

using Json = json::Value;
using Figures = std::vector<std::pair<std::string, double>>;

// Facts that the text shows, too.
constexpr const char* kBestPlan = "cycles of the best plan";
constexpr const char* kMerged = "layout of GradA";

constexpr const char* kUnits[] = {"microseconds", "cycles", "bytes", "flops"};

const json::List& items_of(const Json& object, const char* key) {
  return json::items_of(object.at(key), {"the text", key});
}

double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

void read_times(const Json& report, ComparedFile& file) {
  const double clock =
      file.is_measured ? 1
                       : json::member_of<double>(report.at("planned").at("machine"), "clock_hz");
  const Json& total = report.at("total");
  file.times.emplace_back("total microseconds",
                          microseconds(json::member_of<double>(total, "seconds")));
  file.times.emplace_back("total useful_flops", json::member_of<double>(total, "useful_flops"));
  for (const Json& pass : items_of(report, "passes")) {
    const bool has_seconds = json::find(pass, "seconds") != nullptr;
    const double seconds = !file.is_measured ? json::member_of<double>(pass, "cycles") / clock
                           : has_seconds     ? json::member_of<double>(pass, "seconds")
                                             : 0.0;
    file.times.emplace_back(json::member_of<std::string>(pass, "pass") + " microseconds",
                            microseconds(seconds));
  }
}

void read_run(const Json& report, ComparedFile& file) {
  for (const char* key : {"cycles", "planned_cycles", "moved_bytes", "fullest_tile_bytes"})
    file.run.emplace_back(std::string("total ") + key,
                          json::member_of<double>(report.at("total"), key));
  for (const Json& pass : items_of(report, "passes"))
    for (const Json& phase : items_of(pass, "phases")) {
      const std::string name = fmt::format("{} {} ", json::member_of<std::string>(pass, "pass"),
                                           json::member_of<std::string>(phase, "phase"));
      for (const char* key : {"compute_cycles", "exchange_cycles", "moved_bytes"})
        file.run.emplace_back(name + key, json::member_of<double>(phase, key));
    }
}

Figures plan_figures(const planner::Plan& plan) {
  Figures figures = {{"total cycles", double(plan.cost.cycles.value)},
                     {"temporary bytes", double(plan.cost.temp.value)},
                     {"resident bytes", double(plan.cost.resident.value)}};
  for (const planner::PassCost& pass : plan.cost.passes)
    for (const planner::CostTerm& term : pass.terms)
      figures.emplace_back(fmt::format("{} {} cycles", to_string(pass.pass), to_string(term.name)),
                           double(term.cycles.value));
  return figures;
}

void add_plan_facts(ComparedFile& file) {
  const planner::PlannedLayer& layer = file.plan.front();
  if (file.is_plan)
    file.times = {{"total microseconds",
                   microseconds(double(layer.plan.cost.cycles.value) / layer.machine.clock_hz)}};
  const planner::Plan& plan = layer.plan;
  const Dims& cut = plan.partition;
  file.machine = layer.machine.name;
  file.facts = {{"machine", printable(layer.machine.name)},
                {"tiles of the machine", std::to_string(layer.machine.tiles)},
                {"layer", to_string(layer.problem)},
                {"partition", fmt::format("g{} x{} y{} z{}", cut.g, cut.x, cut.y, cut.z)},
                {"tiles used", std::to_string(plan.tiles_used())},
                {"method of Fwd", plan.dense ? "dense product" : to_string(plan.fwd)},
                {"R", plan.use_dense ? "dense" : "sparse"},
                {"bucket, values", plan.dense ? "-" : std::to_string(plan.nonzeros_per_bucket)},
                {"layouts", std::to_string(1 + plan.backward.size())}};
}

void add_host_facts(const Json& host, ComparedFile& file) {
  file.machine = json::member_of<std::string>(host, "cpu");
  file.facts = {{"machine", printable(file.machine)}};
  for (const char* key : {"threads", "outputs", "inputs", "batch", "block_rows", "block_cols",
                          "density", "data_type", "values"}) {
    const Json& value = host.at(key);
    const auto* const text = std::get_if<std::string>(&value.data);
    file.facts.emplace_back(key, text != nullptr ? *text : value.dump());
  }
}

void read_report(const Json& report, ComparedFile& file) {
  if (report.at("schema_version") != Json(report::kReportSchemaVersion))
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: schema_version is {}; this program reads {}", file.name,
                            report.at("schema_version").dump(), report::kReportSchemaVersion));
  file.is_measured = json::find(report, "host") != nullptr;
  read_times(report, file);
  if (file.is_measured) {
    add_host_facts(report.at("host"), file);
  } else {
    read_run(report, file);
    file.plan.push_back(planner::plan_from_json(report::without_notes(report.at("planned").dump()),
                                                file.name + ": planned"));
    add_plan_facts(file);
  }
  file.facts.emplace_back("status", json::member_of<std::string>(report, "status"));
  const Json* const verdict = json::find(report, "verdict");
  if (verdict != nullptr && verdict->is_object())
    file.facts.emplace_back("verdict", json::member_of<std::string>(*verdict, "text"));
}

ComparedBy compared_by(const ComparedFile& a, const ComparedFile& b) {
  if (a.is_measured || b.is_measured) {
    for (const ComparedFile& file : {a, b})
      if (file.is_plan)
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("{} is a plan, which has no times to compare with a measured "
                                "report; run it with tessera run --plan {} --json",
                                file.name, file.name));
    return ComparedBy::Time;
  }
  return a.is_plan || b.is_plan ? ComparedBy::Plan : ComparedBy::Cycles;
}

Figures figures_of(const ComparedFile& file, ComparedBy by) {
  switch (by) {
    case ComparedBy::Time:
      return file.times;
    case ComparedBy::Plan:
      return plan_figures(file.plan.front().plan);
    case ComparedBy::Cycles:
      break;
  }
  return file.run;
}

std::string kind_of(const ComparedFile& file) {
  return fmt::format("{} on {}", file.is_measured ? "measured" : "modelled",
                     printable(file.machine));
}

double find(const Figures& figures, const std::string& name) {
  const auto at = std::ranges::find(figures, name, &std::pair<std::string, double>::first);
  return at == figures.end() ? 0.0 : at->second;
}

// Returns true if both plans have the same partitions.
bool is_cut_alike(const planner::Plan& a, const planner::Plan& b) {
  return a.partition == b.partition && a.use_dense == b.use_dense &&
         a.dense.has_value() == b.dense.has_value() && a.backward.size() == b.backward.size() &&
         (a.backward.empty() || a.backward[0].partition == b.backward[0].partition);
}

// Plans a layer with the partition that its plan has. A plan without buckets is planned again,
// because constraints cannot give its partitions.
planner::PlanResult priced_as_cut(const planner::PlannedLayer& layer) {
  const planner::Plan& plan = layer.plan;
  planner::Options options = layer.options;
  options.constraints = {};
  options.constraints.use_dense = plan.use_dense;
  if (!plan.dense) {
    options.constraints.x = plan.partition.x;
    options.constraints.y = plan.partition.y;
    options.constraints.z = plan.partition.z;
    options.constraints.grad_w_exchange_buckets = plan.grad_w_exchange_buckets;
  }
  try {
    return planner::plan(layer.problem, layer.machine, options);
  } catch (const Error& error) {  // more parts than the machine has tiles
    if (error.code() != ErrorCode::InvalidArgument) throw;
    planner::PlanResult none;
    none.has_plan = false;
    none.reason = error.what();
    return none;
  }
}

}  // namespace

ComparedFile read_compared(const std::string& name, const std::string& text) {
  ComparedFile file{.name = name};
  const Json json = json::parse_if_json(text).value_or(Json());
  if (json::find(json, "plan") != nullptr && json::find(json, "problem") != nullptr) {
    file.is_plan = true;
    file.plan.push_back(planner::plan_from_json(report::without_notes(text), name));
    add_plan_facts(file);
    return file;
  }
  for (const char* const part : {"schema_version", "status", "total", "passes"})
    if (json::find(json, part) == nullptr)
      throw Error(ErrorCode::BadInput, name +
                                           ": this is neither a report nor a plan; write one with "
                                           "tessera run --json or tessera plan --json");
  try {
    read_report(json, file);
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(error.code(), what.starts_with(name) ? what : name + ": " + what);
  }
  return file;
}

ComparedFile priced_on(const ComparedFile& file, const std::string& machine) {
  if (file.plan.empty())
    throw Error(ErrorCode::InvalidArgument,
                file.name + " was measured on this computer, so it has no plan to price again");
  planner::PlannedLayer layer = file.plan.front();
  layer.machine = device::load_machine(machine);
  const planner::PlanResult best = planner::plan(layer.problem, layer.machine, layer.options);
  // Constraints pin one layout only, so a plan with two is priced as a whole if it is the best.
  const bool is_best = best.has_plan && is_cut_alike(best.plan, layer.plan);
  const planner::PlanResult found = is_best ? best : priced_as_cut(layer);
  if (!found.has_plan)
    throw Error(ErrorCode::NoSolution, fmt::format("the plan of {} does not fit {}: {}", file.name,
                                                   machine, found.reason));
  const bool is_merged = found.plan.backward.size() < layer.plan.backward.size();
  layer.plan = found.plan;
  ComparedFile priced{
      .name = fmt::format("{} on {}", file.name, machine), .is_plan = true, .plan = {layer}};
  add_plan_facts(priced);
  if (best.has_plan)
    priced.facts.emplace_back(kBestPlan, std::to_string(best.plan.cost.cycles.value));
  if (is_merged) priced.facts.emplace_back(kMerged, "all passes run in the layout of Fwd");
  return priced;
}

double Comparison::Line::change() const {
  if (before == after) return 0;
  return before == 0 ? 100 : 100 * (after - before) / before;
}

Comparison::Comparison(ComparedFile before, ComparedFile after)
    : before_(std::move(before)), after_(std::move(after)), by_(compared_by(before_, after_)) {
  Figures first = figures_of(before_, by_), second = figures_of(after_, by_);
  if (is_across_machines() && by_ != ComparedBy::Time) {  // whose clocks may differ
    first.insert(first.begin(), before_.times.begin(), before_.times.end());
    second.insert(second.begin(), after_.times.begin(), after_.times.end());
  }
  for (const auto& [name, value] : first) lines_.push_back({name, value, find(second, name)});
  for (const auto& [name, value] : second)
    if (std::ranges::find(first, name, &std::pair<std::string, double>::first) == first.end())
      lines_.push_back({name, 0, value});
}

double Comparison::growth() const {
  double worst = 0;
  const bool is_time = is_across_machines() || by_ == ComparedBy::Time;
  for (const Line& line : lines_)
    if (is_time ? line.name == "total microseconds"
                : line.name == "total cycles" || line.name == "total moved_bytes")
      worst = std::max(worst, line.change());
  return worst;
}

std::string Comparison::outcome(double threshold) const {
  const auto same = std::ranges::count_if(lines_, [](const Line& l) { return l.change() == 0; });
  const char* const what = by_ == ComparedBy::Time || is_across_machines() ? "time"
                           : by_ == ComparedBy::Plan                       ? "cycles"
                                                                           : "cycles and bytes";
  return fmt::format("{} figures are the same; total {} may grow by {} %: {}", same, what,
                     threshold, growth() > threshold ? "MORE" : "ok");
}

std::string Comparison::text(double threshold) const {
  std::string text;
  if (by_ == ComparedBy::Time || before_.machine != after_.machine)
    text = fmt::format("before: {}; after: {}\n", kind_of(before_), kind_of(after_));
  text += fmt::format("{:<44}{:>16}{:>16}{:>12}\n", "figure", "before", "after", "change, %");
  for (const Line& line : lines_)
    if (line.change() != 0)
      text += fmt::format("{:<44}{:>16}{:>16}{:>+12.2f}\n", line.name, line.before, line.after,
                          line.change());
  text += outcome(threshold) + "\n";
  for (const auto& [what, value] : after_.facts) {
    if (what == kBestPlan)
      text +=
          fmt::format("the best plan for {} takes {} cycles\n", printable(after_.machine), value);
    if (what == kMerged) text += fmt::format("{}: {}\n", what, value);
  }
  return text;
}

std::vector<Comparison::Line> Comparison::lines_in(const std::string& unit) const {
  std::vector<Line> lines;
  for (const Line& line : lines_)
    if (line.name.ends_with(unit)) lines.push_back(line);
  return lines;
}

Report Comparison::report(double threshold) const {
  Report report{.name = "compare",
                .title = "Two reports side by side",
                .subtitle = fmt::format("before: {}; after: {}", before_.name, after_.name),
                .facts = {{"before", before_.name},
                          {"after", after_.name},
                          {"before_is", kind_of(before_)},
                          {"after_is", kind_of(after_)},
                          {"growth_percent", growth()},
                          {"threshold_percent", threshold}},
                .verdict = outcome(threshold)};
  Table facts{.key = "facts",
              .title = "Layer and plan",
              .columns = {{.key = "what", .title = "what"},
                          {.key = "before", .title = "before"},
                          {.key = "after", .title = "after"}}};
  for (const auto& [what, value] : before_.facts) facts.rows.push_back({what, value, {}});
  for (const auto& [what, value] : after_.facts) {
    const auto same = std::ranges::find_if(
        facts.rows, [&](const auto& row) { return std::get<std::string>(row[0]) == what; });
    if (same != facts.rows.end())
      (*same)[2] = value;
    else
      facts.rows.push_back({what, {}, value});
  }
  report.tables.push_back(std::move(facts));
  for (const char* unit : kUnits) {
    const std::vector<Line> lines = lines_in(unit);
    if (lines.empty()) continue;
    Table table{.key = unit,
                .title = fmt::format("Figures in {}", unit),
                .columns = {{.key = "figure", .title = "figure"},
                            {.key = "before", .title = "before"},
                            {.key = "after", .title = "after"},
                            {.key = "change_percent", .title = "change, %"}}};
    for (const Line& line : lines)
      if (line.change() != 0)
        table.rows.push_back({line.name, line.before, line.after, line.change()});
    if (const std::size_t same = lines.size() - table.rows.size(); same > 0)
      table.note = fmt::format("{} figures are the same on both sides.", same);
    table.chart = {.kind = Chart::Kind::Bars,
                   .label = fmt::format("Before and after, {}", unit),
                   .x = "figure",
                   .y = {"before", "after"}};
    report.tables.push_back(std::move(table));
  }
  return report;
}

}  // namespace tessera::study
