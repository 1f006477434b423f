#include "tessera/bench/layer/cache_of_peak.hpp"

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

CacheOfPeak measure_cache_of_peak() {
  const host::HostCpu cpu = host::read_host_cpu();
  return {host::measure_read_rate(Bytes(cpu.l2.value / 2)) / host::measure_float_peak().fused,
          codelets::instruction_set()};
}

UseAvx2::UseAvx2() { choose(HWY_AVX2); }
UseAvx2::~UseAvx2() { choose(0); }
bool UseAvx2::is_possible() { return (hwy::SupportedTargets() & HWY_AVX2) != 0; }

}  // namespace tessera::bench
