#include "tessera/study/pod_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/report/trace.hpp"

namespace tessera::study {
namespace {

constexpr double kMicro = 1e6;

Table pass_table(const PodRun& run) {
  Table table{.key = "passes",
              .title = "Passes",
              .note =
                  "Time is modelled: that of the slowest device, of the collectives and of "
                  "a barrier. Planned is the time that the plan expects.",
              .columns = {{"pass", "pass", -1, 1, 6},
                          {"seconds", "us", 2, kMicro, 11},
                          {"device_seconds", "devices", 2, kMicro, 11},
                          {"collective_seconds", "collectives", 2, kMicro, 13},
                          {"planned_seconds", "planned", 2, kMicro, 11},
                          {"slowest_device", "slowest", -1, 1, 9},
                          {"link_bytes", "link MB", 3, 1e-6, 11},
                          {"note", "check", -1, 1, 0}}};
  for (std::size_t p = 0; p < run.passes.size(); ++p) {
    const pod::PodLedger& ledger = run.passes[p].ledger;
    double bytes = 0;
    for (const double level : ledger.level_bytes()) bytes += level;
    Cell slowest;
    for (const pod::PodStep& step : ledger.steps)
      if (step.slowest() != nullptr) slowest = step.slowest()->device;
    const auto& verdict = run.passes[p].verdict;
    const std::string& fault = run.passes[p].fault;
    table.rows.push_back({to_string(ledger.pass), ledger.seconds(), ledger.device_seconds(),
                          ledger.collective_seconds(), run.plan.passes[p].seconds(), slowest, bytes,
                          (verdict ? to_string(*verdict) : "results were not checked") +
                              (fault.empty() ? "" : "; " + fault)});
  }
  table.chart = {.kind = Chart::Kind::Bars,
                 .label = "Microseconds",
                 .x = "pass",
                 .y = {"device_seconds", "collective_seconds"}};
  return table;
}

Table device_table(const PodRun& run) {
  Table table{.key = "devices",
              .title = "Devices",
              .note =
                  "Cycles of all passes, bytes between the tiles of the device, and the "
                  "memory of its fullest tile.",
              .columns = {{"device", "device", -1, 1, 7},
                          {"part", "part", -1, 1, 20},
                          {"cycles", "cycles", -1, 1, 12},
                          {"moved_bytes", "tile MB", 3, 1e-6, 11},
                          {"tile_bytes", "tile B", -1, 1, 9}}};
  for (std::size_t d = 0; d < run.places.size(); ++d) {
    std::int64_t cycles = 0, moved = 0;
    bool ran = run.passes.empty();
    for (const PodRunPass& pass : run.passes)
      for (const pod::PodStep& step : pass.ledger.steps)
        for (const pod::DeviceFigures& device : step.devices)
          if (device.device == run.places[d].device) {
            ran = true;
            cycles += device.cycles.value;
            moved += device.moved.value;
          }
    if (!ran) continue;
    table.rows.push_back({run.places[d].device, to_string(run.places[d].at), cycles, double(moved),
                          run.memory[d].value});
  }
  table.chart = {
      .kind = Chart::Kind::Bars, .label = "Cycles by device", .x = "device", .y = {"cycles"}};
  return table;
}

Table level_table(const PodRun& run) {
  Table table{.key = "levels",
              .title = "Traffic by level",
              .note = "Bytes over the links of each level of the pod, every hop counted.",
              .columns = {{"pass", "pass", -1, 1, 6},
                          {"level", "level", -1, 1, 6},
                          {"kind", "links", -1, 1, 8},
                          {"bytes", "MB", 3, 1e-6, 12}}};
  for (const PodRunPass& pass : run.passes) {
    const std::vector<double> bytes = pass.ledger.level_bytes();
    for (std::size_t l = 0; l < bytes.size(); ++l)
      table.rows.push_back({to_string(pass.ledger.pass), std::int64_t(l),
                            std::string(device::to_string(run.plan.pod.levels[l].kind)), bytes[l]});
  }
  return table;
}

std::string verdict_words(const PodRun& run) {
  double seconds = 0;
  for (const PodRunPass& pass : run.passes) seconds += pass.ledger.seconds();
  std::string words = fmt::format("{:.2f} us on {} of {} devices (modelled)", seconds * kMicro,
                                  run.plan.grid.devices(), run.plan.pod.devices());
  if (run.passes.empty()) return "no pass ran";
  const std::int64_t simulated = run.passes.front().ledger.devices_simulated;
  if (simulated < run.plan.grid.devices())
    words += fmt::format(
        "; {} devices were simulated, the others are taken to be as fast as the "
        "slowest of them, and results are not complete",
        simulated);
  return words;
}

}  // namespace

Report report_of(const PodRun& run, const std::string& program) {
  const Problem& problem = run.plan.problem;
  return {.name = "pod",
          .title = fmt::format("{} on {} devices", to_string(problem), run.plan.pod.devices()),
          .subtitle = fmt::format("{}; grid {}", run.source, to_string(run.plan.grid)),
          .is_complete = !run.is_partial,
          .facts = {{"tool", program},
                    {"layer", to_string(problem)},
                    {"weights", run.source},
                    {"pod", run.plan.pod.name},
                    {"devices", run.plan.pod.devices()},
                    {"grid", to_string(run.plan.grid)},
                    {"serial_parts", run.plan.serial_parts},
                    {"planned_seconds", run.plan.seconds()},
                    {"how", "modelled"}},
          .tables = {pass_table(run), device_table(run), level_table(run)},
          .verdict = verdict_words(run)};
}

std::string to_trace(const PodRun& run) {
  constexpr std::int64_t kLinks = 0;  // the track of collectives and barriers
  const auto track_of = [](std::int64_t device) { return device + 1; };
  report::TraceEvents events;
  events.add_name("thread_name", kLinks, "links");
  double begin = 0;
  std::set<std::int64_t> named;
  for (const PodRunPass& pass : run.passes)
    for (const pod::PodStep& step : pass.ledger.steps) {
      const std::string name = to_string(pass.ledger.pass) + " " + step.name();
      json::Value args = json::Object();
      if (step.collective) args["level_bytes"] = step.collective->level_bytes;
      if (step.devices.empty())
        events.add_span(name, "links", kLinks, begin * kMicro, step.seconds * kMicro, args);
      for (const auto& [device, cycles, moved] : step.devices) {
        if (named.insert(device).second)
          events.add_name("thread_name", track_of(device), fmt::format("device {}", device));
        const double seconds = double(cycles.value) / run.plan.pod.machine.clock_hz;
        events.add_span(name, "device", track_of(device), begin * kMicro, seconds * kMicro,
                        {{"cycles", cycles.value}, {"bytes_between_tiles", moved.value}});
      }
      begin += step.seconds;
    }
  return events.text(json::Object());
}

std::string to_text(const PodRun& run, bool with_plans) {
  std::string text = to_string(run.plan) + "\n";
  for (const PodRunPass& pass : run.passes) {
    text += to_string(pass.ledger);
    for (const std::string& note : pass.notes) text += "  " + note + "\n";
    if (pass.verdict) text += "  check      " + to_string(*pass.verdict) + "\n";
  }
  if (with_plans)
    for (const pod::DeviceShape& shape : run.plan.shapes)
      text += fmt::format("\nplan of {}\n{}", to_string(shape.size), to_string(shape.plan));
  return text + "verdict    " + verdict_words(run) + "\n";
}

bool PodRun::ok() const {
  return std::ranges::all_of(
      passes, [](const PodRunPass& pass) { return !pass.verdict || pass.verdict->ok(); });
}

}  // namespace tessera::study
