#include "tessera/train/rewire/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void refuse_schedule(const std::string& what) {
  throw_invalid("schedule of rewires: " + what);
}

}  // namespace

void check(const RewireSchedule& s) {
  if (!(s.fraction >= 0 && s.fraction <= 1))
    refuse_schedule(fmt::format("fraction is {}; it must be in 0..1", s.fraction));
  if (s.every < 1) refuse_schedule(fmt::format("every is {}; it must be at least 1", s.every));
  if (s.begin < 1) refuse_schedule(fmt::format("begin is {}; it must be at least 1", s.begin));
  if (s.end < 0 || (s.end > 0 && s.end < s.begin))
    refuse_schedule(
        fmt::format("end is {} and begin {}; end must be at least begin, or 0 for no "
                    "rewires",
                    s.end, s.begin));
}

bool RewireSchedule::is_due(std::int64_t step) const {
  return step >= begin && step <= end && step % every == 0;
}

double RewireSchedule::at(std::int64_t step) const {
  if (!is_due(step)) return 0;
  const double progress = double(step) / double(end);
  switch (decay) {
    case FractionDecay::Cosine:
      return fraction / 2 * (1 + std::cos(std::numbers::pi * progress));
    case FractionDecay::Linear:
      return fraction * (1 - progress);
    case FractionDecay::Constant:
      return fraction;
  }
  return 0;
}

const char* to_string(DensityCurve curve) {
  switch (curve) {
    case DensityCurve::Linear:
      return "linear";
    case DensityCurve::Cubic:
      return "cubic";
    case DensityCurve::Exponential:
      return "exponential";
  }
  return "";
}

double DensitySchedule::at(std::int64_t step) const {
  if (step <= begin) return first;
  if (step >= end) return last;
  const double p = double(step - begin) / double(end - begin);
  switch (curve) {
    case DensityCurve::Linear:
      return first + (last - first) * p;
    case DensityCurve::Cubic:
      return last + (first - last) * std::pow(1 - p, 3);
    case DensityCurve::Exponential:
      return first * std::pow(last / first, p);
  }
  return last;
}

void check(const DensitySchedule& s, const RewireSchedule& rewires) {
  const auto refuse = [](const std::string& what) {
    throw_invalid("schedule of densities: " + what);
  };
  for (const auto& [name, density] : {std::pair("first", s.first), std::pair("last", s.last)})
    if (!(density > 0 && density <= 1))
      refuse(fmt::format("{} is {}; it must be above 0 and at most 1", name, density));
  if (s.begin < 0) refuse(fmt::format("begin is {}; it must be at least 0", s.begin));
  if (s.end <= s.begin)
    refuse(fmt::format("end is {} and begin {}; end must be above begin", s.end, s.begin));
  const std::int64_t last_rewire = rewires.end / rewires.every * rewires.every;
  if (last_rewire < std::max(s.end, rewires.begin))
    refuse(fmt::format(
        "end is {}, but {}, so the density {} would not be reached; rewire more often or longer, "
        "or let the schedule end earlier",
        s.end,
        last_rewire == 0 ? std::string("patterns never change")
                         : fmt::format("the last rewire is at step {}", last_rewire),
        s.last));
}

std::int64_t blocks_to_drop(double fraction, std::int64_t blocks) {
  return std::int64_t(fraction * double(blocks));
}

}  // namespace tessera::train
