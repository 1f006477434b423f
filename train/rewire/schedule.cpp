#include "tessera/train/rewire/schedule.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void refuse_schedule(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "schedule of rewires: " + what);
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

std::int64_t blocks_to_drop(double fraction, std::int64_t blocks) {
  return std::int64_t(fraction * double(blocks));
}

}  // namespace tessera::train
