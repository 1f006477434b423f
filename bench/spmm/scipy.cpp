#include "tessera/bench/spmm/scipy.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace tessera::bench {

double scipy_seconds(std::int64_t side, double density, std::int64_t z, const std::string& python,
                     int repeats) {
  if (python.empty()) return 0;
  const std::string command =
      fmt::format("{} {}/bench/spmm/scipy_product.py {} {} {} {} 2>/dev/null", python,
                  TESSERA_SOURCE_DIR, side, density, z, repeats);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char version[32] = "";
  double seconds = 0;
  if (pipe == nullptr || std::fscanf(pipe.get(), "%31s %lf", version, &seconds) != 2) return 0;
  return seconds;
}

}  // namespace tessera::bench
