#include "tessera/base/dims.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

std::string to_string(const Dims& dims) {
  return fmt::format("g{} x{} y{} z{}", dims.g, dims.x, dims.y, dims.z);
}

std::string_view to_string(Axis axis) {
  switch (axis) {
    case Axis::X:
      return "x";
    case Axis::Y:
      return "y";
    case Axis::Z:
      return "z";
  }
  assertion_failed("every axis has a name", __FILE__, __LINE__);
}

}  // namespace tessera
