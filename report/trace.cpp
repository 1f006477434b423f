#include "tessera/report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::report {
namespace {

using device::StepKind;
using Json = json::Value;

constexpr std::int64_t kHeadEvents = 2;   // names of the process and of the machine's track
constexpr std::int64_t kStepEvents = 3;   // overhead, step, memory
constexpr std::size_t kLongestName = 60;  // of a run or a machine
constexpr int kMachineTrack = 0;

std::string shown(const std::string& name) { return name.substr(0, kLongestName); }

class Tracer {
 public:
  Tracer(const TracedRun& run, const TraceLimits& limits)
      : run_(run),
        first_tile_(limits.first_tile),
        end_tile_(limits.tiles == 0 ? run.machine.tiles : limits.first_tile + limits.tiles) {
    const auto steps = std::ssize(run.ledger.steps);
    const std::int64_t budget = limits.events - kHeadEvents;
    steps_ = std::min(steps, budget / kStepEvents);
    if (run.tiles.steps.empty() || limits.tracks == 0) return;
    // A track consists of its name and one event for each step.
    const std::int64_t tracks =
        std::min(limits.tracks, (budget - steps_ * kStepEvents) / (steps_ + 1));
    if (tracks > 0) tiles_of_a_track_ = ceil_div(end_tile_ - first_tile_, tracks);
  }

  std::string text() {
    events_.add_name("process_name", kMachineTrack,
                     shown(run_.name) + " on " + shown(run_.machine.name));
    events_.add_name("thread_name", kMachineTrack, "whole machine");
    for (std::int64_t track = 0; track < tracks(); ++track) name_track(track);
    for (std::int64_t i = 0; i < steps_; ++i) add_step(std::size_t(i));
    return events_.text({{"cycles", run_.ledger.total().value},
                         {"steps", run_.ledger.steps.size()},
                         {"steps_left_out", std::ssize(run_.ledger.steps) - steps_},
                         {"tiles", run_.machine.tiles},
                         {"tiles_of_a_track", tiles_of_a_track_}});
  }

 private:
  std::int64_t tracks() const {
    return tiles_of_a_track_ == 0 ? 0 : ceil_div(end_tile_ - first_tile_, tiles_of_a_track_);
  }
  double microseconds(Cycles cycles) const {
    return double(cycles.value) / run_.machine.clock_hz * 1e6;
  }
  void name_track(std::int64_t track) {
    const std::int64_t first = first_tile_ + track * tiles_of_a_track_;
    const std::int64_t last = std::min(first + tiles_of_a_track_, end_tile_) - 1;
    events_.add_name("thread_name", track + 1,
                     first == last ? fmt::format("tile {}", first)
                                   : fmt::format("slowest of tiles {}..{}", first, last));
  }
  void add_span(std::string_view name, std::string_view category, std::int64_t track, Cycles length,
                Json args) {
    args["cycles"] = length.value;
    args["origin"] = to_string(device::StepRecord::kCyclesOrigin);
    events_.add_span(name, category, track, microseconds(now_), microseconds(length),
                     std::move(args));
  }
  void add_memory(std::size_t i) {
    const int stage = i < run_.tiles.stages.size() ? run_.tiles.stages[i] : -1;
    if (stage < 0 || std::size_t(stage) >= run_.memory.by_stage.size()) return;
    events_.add_count("bytes on the fullest tile", kMachineTrack, microseconds(now_),
                      {{"bytes", run_.memory.by_stage[std::size_t(stage)].value}});
  }
  void add_step(std::size_t i) {
    const device::StepRecord& step = run_.ledger.steps[i];
    add_memory(i);
    const bool launches = step.kind == StepKind::Compute;
    if (step.overhead > Cycles())
      add_span(launches ? "launch" : "sync", "sync", kMachineTrack, step.overhead, json::Object());
    now_ += step.overhead;
    add_span(to_string(step.phase), to_string(step.kind), kMachineTrack, step.cycles,
             {{"slowest tile", step.critical_tile.value}, {"moved bytes", step.moved.value}});
    if (i < run_.tiles.steps.size() && !run_.tiles.steps[i].empty())
      for (std::int64_t track = 0; track < tracks(); ++track) add_tiles(i, track);
    now_ += step.cycles;
  }
  // Adds the slowest tile of the track; the lowest number on ties.
  void add_tiles(std::size_t i, std::int64_t track) {
    const auto& figures = run_.tiles.steps[i];
    const std::int64_t begin = first_tile_ + track * tiles_of_a_track_;
    const std::int64_t end = std::min({std::ssize(figures), end_tile_, begin + tiles_of_a_track_});
    if (begin >= end) return;
    const auto first = figures.begin() + begin, last = figures.begin() + end;
    const auto slowest = std::max_element(
        first, last, [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
    if (slowest->cycles == Cycles()) return;
    const device::StepRecord& step = run_.ledger.steps[i];
    add_span(to_string(step.phase), to_string(step.kind), track + 1, slowest->cycles,
             {{"tile", slowest - figures.begin()},
              {"sent bytes", slowest->sent.value},
              {"received bytes", slowest->received.value}});
  }

  const TracedRun& run_;
  const std::int64_t first_tile_, end_tile_;  // that have tracks
  std::int64_t steps_ = 0;
  std::int64_t tiles_of_a_track_ = 0;  // 0: no tracks
  Cycles now_;
  TraceEvents events_;
};

}  // namespace

void TraceEvents::add_name(const char* what, std::int64_t track, const std::string& name) {
  events_.push_back({{"name", what},
                     {"ph", "M"},
                     {"ts", 0},
                     {"pid", 0},
                     {"tid", track},
                     {"args", {{"name", name}}}});
}

void TraceEvents::add_span(std::string_view name, std::string_view category, std::int64_t track,
                           double begin, double length, Json args) {
  events_.push_back({{"name", name},
                     {"cat", category},
                     {"ph", "X"},
                     {"ts", begin},
                     {"dur", length},
                     {"pid", 0},
                     {"tid", track},
                     {"args", std::move(args)}});
}

void TraceEvents::add_count(std::string_view name, std::int64_t track, double begin, Json args) {
  events_.push_back({{"name", name},
                     {"ph", "C"},
                     {"ts", begin},
                     {"pid", 0},
                     {"tid", track},
                     {"args", std::move(args)}});
}

std::string TraceEvents::text(Json other) {
  const Json trace = {{"displayTimeUnit", "ns"},
                      {"otherData", std::move(other)},
                      {"traceEvents", std::move(events_)}};
  return trace.dump() + "\n";
}

std::string to_trace(const TracedRun& run, const TraceLimits& limits) {
  constexpr std::int64_t kFewestEvents = 100;
  if (limits.tracks < 0 || limits.events < kFewestEvents)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a trace of {} tracks and {} events; tracks must be 0 or more, events "
                            "{} or more",
                            limits.tracks, limits.events, kFewestEvents));
  const std::int64_t all = run.machine.tiles;
  if (limits.first_tile < 0 || limits.tiles < 0 || limits.first_tile >= all ||
      limits.tiles > all - limits.first_tile)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a trace of {} tiles from tile {} on; {} has tiles 0..{}", limits.tiles,
                            limits.first_tile, run.machine.name, all - 1));
  return Tracer(run, limits).text();
}

std::string join_traces(const std::vector<std::string>& traces) {
  Json all = {
      {"displayTimeUnit", "ns"}, {"otherData", json::List()}, {"traceEvents", json::List()}};
  double start = 0;  // of the current run, in microseconds
  for (std::size_t process = 0; process < traces.size(); ++process) {
    const Json trace = json::parse(traces[process], "a trace", json::kAnySize);
    json::ObjectReader fields(trace, {"a trace", ""});
    all["otherData"].push_back(fields.at("otherData"));
    const json::Place place{"a trace", "traceEvents"};
    double end = start;
    for (Json event : json::items_of(fields.at("traceEvents"), place)) {
      double begin = 0, duration = 0;
      json::read(json::ObjectReader(event, place).at("ts"), place, begin);
      if (const Json* const found = json::find(event, "dur")) json::read(*found, place, duration);
      event["pid"] = process;
      event["ts"] = start + begin;
      end = std::max(end, start + begin + duration);
      all["traceEvents"].push_back(std::move(event));
    }
    start = end;
  }
  return all.dump() + "\n";
}

}  // namespace tessera::report
