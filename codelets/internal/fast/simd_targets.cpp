#include "tessera/codelets/internal/fast/simd_targets.hpp"

#include "tessera/codelets/internal/fast/target_choice.hpp"
// Must come after the choice of targets, which it reads.
#include <hwy/targets.h>

#include "tessera/base/instruction_sets.hpp"

namespace tessera::codelets::internal {
namespace {

// Highway ranks instruction sets: the lower the bit, the better.
std::int64_t lowest_bit(std::int64_t bits) { return bits & -bits; }

std::int64_t targets_in_use() { return hwy::SupportedTargets() | HWY_STATIC_TARGET; }

void choose(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<SimdTarget> simd_targets() {
  const std::int64_t here = allowed_instruction_sets();
  std::vector<SimdTarget> targets;
  for (std::int64_t left = HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t bit = lowest_bit(left);
    targets.push_back({hwy::TargetName(bit), bit, (here & bit) != 0});
  }
  return targets;
}

std::string simd_target_in_use() {
  return hwy::TargetName(lowest_bit(targets_in_use() & HWY_TARGETS));
}

UseSimdTarget::UseSimdTarget(const SimdTarget& target) { choose(target.bit); }
UseSimdTarget::~UseSimdTarget() { choose(allowed_instruction_sets()); }

}  // namespace tessera::codelets::internal

namespace tessera::codelets {

std::string instruction_set() {
  static_cast<void>(allowed_instruction_sets());  // throws if the choice is not one of this CPU
  return internal::simd_target_in_use();
}

}  // namespace tessera::codelets
