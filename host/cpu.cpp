#include "tessera/host/cpu.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "tessera/codelets/instruction_set.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::host {
namespace {

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Returns the bytes of a size such as "1024K" or "32M", as Linux writes it, and 0 for any other
// text.
Bytes parse_size(const std::string& text) {
  std::int64_t number = 0;
  std::size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && number < (1 << 24); ++i)
    number = 10 * number + (text[i] - '0');
  const std::string unit = text.substr(i);
  if (unit == "K") return Bytes(number << 10);
  if (unit == "M") return Bytes(number << 20);
  return Bytes();
}

Bytes cache_of_level(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    if (first_word(folder + "level") == std::to_string(level) &&
        first_word(folder + "type") != "Instruction")
      return parse_size(first_word(folder + "size"));
  }
  return Bytes();
}

// Returns the size that the C library asks the processor for, which some containers, where no
// folder lists caches, have too. The third level is left out: this is all of it, not what a core
// reaches.
Bytes cache_of_processor([[maybe_unused]] int level) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  constexpr int kNames[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE};
  if (level <= 2) return Bytes(std::max(sysconf(kNames[level - 1]), 0L));
#endif
  return Bytes();
}

Bytes cache_or(int level, Bytes otherwise) {
  for (const Bytes size : {cache_of_level(level), cache_of_processor(level)})
    if (size.value > 0) return size;
  return otherwise;
}

Bytes vector_in_use() {
  const std::string set = codelets::instruction_set();
  return Bytes(set.starts_with("AVX3") ? 64 : set == "AVX2" ? 32 : 16);
}

}  // namespace

HostCpu read_host_cpu() {
  return {.cores = std::max<std::int64_t>(std::thread::hardware_concurrency(), 1),
          .l1_data = cache_or(1, Bytes(32 << 10)),
          .l2 = cache_or(2, Bytes(1 << 20)),
          .l3 = cache_or(3, Bytes(16 << 20)),
          .vector = vector_in_use(),
          .fast_pairs = vector_in_use() == Bytes(64) && codelets::multiplies_pairs_fast()};
}

std::string host_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace tessera::host
