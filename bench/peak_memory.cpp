#include "tessera/bench/peak_memory.hpp"

#include <malloc.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace tessera::bench {
namespace {

double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::stod(line.substr(key.size() + 1)) * 1024;
  throw std::runtime_error("no " + key + " in /proc/self/status");
}

}  // namespace

double peak_memory(const std::function<void()>& body) {
  malloc_trim(0);  // what earlier work has left would hide what this takes
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again here
  const double before = status_bytes("VmRSS:");
  body();
  return status_bytes("VmHWM:") - before;
}

}  // namespace tessera::bench
