#include "tessera/pod/pod_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod {
namespace {

std::string bytes_text(const std::vector<double>& level_bytes) {
  std::string text;
  for (std::size_t l = 0; l < level_bytes.size(); ++l)
    if (level_bytes[l] > 0)
      text += fmt::format("{}level {}: {:.0f} bytes", text.empty() ? "" : ", ", l, level_bytes[l]);
  return text;
}

}  // namespace

const DeviceFigures* PodStep::slowest() const {
  if (devices.empty()) return nullptr;
  return &*std::ranges::max_element(devices, {}, &DeviceFigures::cycles);
}

std::string PodStep::name() const {
  if (collective)
    return fmt::format("{} of {}", collectives::to_string(collective->operation),
                       to_string(collective->operand));
  return devices.empty() ? "barrier" : "devices";
}

double PodLedger::seconds() const { return internal::sum_of(steps, &PodStep::seconds); }

double PodLedger::device_seconds() const {
  return internal::sum_of(
      steps, [](const PodStep& step) { return step.devices.empty() ? 0 : step.seconds; });
}

double PodLedger::collective_seconds() const {
  return internal::sum_of(steps,
                          [](const PodStep& step) { return step.collective ? step.seconds : 0; });
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
    text += fmt::format("  {:<22} {:>10.2f} us", step.name(), step.seconds * kMicroseconds);
    if (const DeviceFigures* slowest = step.slowest())
      text += fmt::format("  slowest is device {} of {}: {} cycles", slowest->device,
                          step.devices.size(), slowest->cycles.value);
    if (step.collective) text += "  " + bytes_text(step.collective->level_bytes);
    text += "\n";
  }
  return text;
}

}  // namespace tessera::pod
