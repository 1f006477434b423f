#include "tessera/pod/pod_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/json/value.hpp"

namespace tessera::pod {
namespace {

using Json = json::Value;

std::string bytes_text(const std::vector<double>& level_bytes) {
  std::string text;
  for (std::size_t l = 0; l < level_bytes.size(); ++l)
    if (level_bytes[l] > 0)
      text += fmt::format("{}level {}: {:.0f} bytes", text.empty() ? "" : ", ", l, level_bytes[l]);
  return text;
}

std::string name_of(const PodStep& step) {
  if (step.collective)
    return fmt::format("{} of {}", collectives::to_string(step.collective->operation),
                       to_string(step.collective->operand));
  return step.devices.empty() ? "barrier" : "devices";
}

Json event(const std::string& name, std::int64_t row, double start, double seconds) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", 0},
          {"tid", row},
          {"ts", start * kMicroseconds},
          {"dur", seconds * kMicroseconds}};
}

Json row_name(std::int64_t row, const std::string& name) {
  return {
      {"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", row}, {"args", {{"name", name}}}};
}

// The row of collectives and barriers; devices have the rows after it.
constexpr std::int64_t kLinksRow = 0;
std::int64_t row_of(std::int64_t device) { return device + 1; }

void add_step(const PodLedger& pass, const PodStep& step, double start, double clock_hz,
              Json& events) {
  const std::string name = to_string(pass.pass) + " " + name_of(step);
  if (step.devices.empty()) {
    Json e = event(name, kLinksRow, start, step.seconds);
    if (step.collective) e["args"]["level_bytes"] = step.collective->level_bytes;
    events.push_back(std::move(e));
    return;
  }
  for (const DeviceFigures& device : step.devices) {
    Json e = event(name, row_of(device.device), start, double(device.cycles.value) / clock_hz);
    e["args"] = {{"cycles", device.cycles.value}, {"bytes_between_tiles", device.moved.value}};
    events.push_back(std::move(e));
  }
}

template <class Counts>
double sum_of(const std::vector<PodStep>& steps, Counts counts) {
  double sum = 0;
  for (const PodStep& step : steps)
    if (counts(step)) sum += step.seconds;
  return sum;
}

}  // namespace

const DeviceFigures* PodStep::slowest() const {
  if (devices.empty()) return nullptr;
  return &*std::ranges::max_element(devices, {}, &DeviceFigures::cycles);
}

double PodLedger::seconds() const {
  return sum_of(steps, [](const PodStep&) { return true; });
}

double PodLedger::device_seconds() const {
  return sum_of(steps, [](const PodStep& step) { return !step.devices.empty(); });
}

double PodLedger::collective_seconds() const {
  return sum_of(steps, [](const PodStep& step) { return step.collective.has_value(); });
}

std::vector<double> PodLedger::level_bytes() const {
  std::vector<double> sum;
  for (const PodStep& step : steps) {
    if (!step.collective) continue;
    sum.resize(std::max(sum.size(), step.collective->level_bytes.size()), 0.0);
    for (std::size_t l = 0; l < step.collective->level_bytes.size(); ++l)
      sum[l] += step.collective->level_bytes[l];
  }
  return sum;
}

std::string to_string(const PodLedger& ledger) {
  std::string text = fmt::format("{:<10} {:>12.2f} us\n", to_string(ledger.pass),
                                 ledger.seconds() * kMicroseconds);
  for (const PodStep& step : ledger.steps) {
    text += fmt::format("  {:<22} {:>10.2f} us", name_of(step), step.seconds * kMicroseconds);
    if (const DeviceFigures* slowest = step.slowest())
      text += fmt::format("  slowest is device {} of {}: {} cycles", slowest->device,
                          step.devices.size(), slowest->cycles.value);
    if (step.collective) text += "  " + bytes_text(step.collective->level_bytes);
    text += "\n";
  }
  return text;
}

std::string trace_json(const std::vector<PodLedger>& passes, double clock_hz) {
  Json events = json::List{row_name(kLinksRow, "links")};
  double start = 0;
  std::vector<std::int64_t> named;
  for (const PodLedger& pass : passes)
    for (const PodStep& step : pass.steps) {
      for (const DeviceFigures& device : step.devices)
        if (std::ranges::find(named, device.device) == named.end()) {
          named.push_back(device.device);
          events.push_back(
              row_name(row_of(device.device), fmt::format("device {}", device.device)));
        }
      add_step(pass, step, start, clock_hz, events);
      start += step.seconds;
    }
  const Json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}

}  // namespace tessera::pod
