#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"

namespace tessera {

// Returns part i of `size` things that are cut into parts which differ by one at most: for work
// that is dealt to threads or ranks. 0 <= i < parts, and size * parts is below 2^63. share_of
// (dims.hpp) cuts into whole grains and equal shares. Example: even_part(10, 4, 1) == {2, 5}.
constexpr Range even_part(std::int64_t size, std::int64_t parts, std::int64_t i) {
  return {size * i / parts, size * (i + 1) / parts};
}

}  // namespace tessera
