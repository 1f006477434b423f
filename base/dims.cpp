#include "tessera/base/dims.hpp"

#include <fmt/format.h>

namespace tessera {

std::string to_string(const Dims& dims) {
  return fmt::format("g{} x{} y{} z{}", dims.g, dims.x, dims.y, dims.z);
}

}  // namespace tessera
