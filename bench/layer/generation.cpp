#include "tessera/bench/layer/generation.hpp"

#include <hwy/targets.h>

#include "tessera/codelets/instruction_set.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/float_peak.hpp"

namespace tessera::bench {
namespace {

void choose(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

MeasuredGeneration measure_generation() {
  const host::HostCpu cpu = host::read_host_cpu();
  MeasuredGeneration measured;
  measured.bytes_per_flop =
      host::measure_read_rate(Bytes(cpu.l2.value / 2)) / host::measure_float_peak().fused;
  measured.instruction_set = codelets::instruction_set();
  const double ratio = measured.bytes_per_flop;
  if (ratio >= 0.7 && ratio <= 1.3) measured.generation = Generation::Zen4Like;
  if (ratio >= 0.35 && ratio <= 0.65) measured.generation = Generation::Zen5Like;
  return measured;
}

std::string to_string(Generation generation) {
  switch (generation) {
    case Generation::Zen4Like:
      return "Zen 4";
    case Generation::Zen5Like:
      return "Zen 5";
    case Generation::Other:
      return "neither Zen 4 nor Zen 5";
  }
  return "?";
}

UseAvx2::UseAvx2() { choose(HWY_AVX2); }
UseAvx2::~UseAvx2() { choose(0); }
bool UseAvx2::is_possible() { return (hwy::SupportedTargets() & HWY_AVX2) != 0; }

}  // namespace tessera::bench
