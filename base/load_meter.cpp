#include "tessera/base/load_meter.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <fstream>
#include <string>

namespace tessera {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// The ticks of all processors: all of them, and those that were stolen.
struct Ticks {
  double all = 0, stolen = 0;
};

Ticks ticks_now() {
  std::ifstream stat("/proc/stat");
  std::string name;
  Ticks ticks;
  stat >> name;
  constexpr int kKinds = 8, kStolen = 7;
  double kind = 0;
  for (int i = 0; i < kKinds && stat >> kind; ++i) {
    ticks.all += kind;
    if (i == kStolen) ticks.stolen = kind;
  }
  return ticks;
}

}  // namespace

LoadMeter::LoadMeter()
    : wall_(seconds_of(CLOCK_MONOTONIC)), processor_(seconds_of(CLOCK_PROCESS_CPUTIME_ID)) {
  const Ticks ticks = ticks_now();
  stolen_ = ticks.stolen;
  all_ = ticks.all;
}

double LoadMeter::busy(int threads) const {
  const double wall = (seconds_of(CLOCK_MONOTONIC) - wall_) * double(threads);
  return wall > 0 ? (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor_) / wall : 1;
}

double LoadMeter::load() {
  std::ifstream average("/proc/loadavg");
  double load = 0;
  average >> load;
  return load;
}

std::int64_t LoadMeter::cores_of_process() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::int64_t LoadMeter::peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

double LoadMeter::stolen() const {
  const Ticks ticks = ticks_now();
  return ticks.all > all_ ? (ticks.stolen - stolen_) / (ticks.all - all_) : 0;
}

}  // namespace tessera
