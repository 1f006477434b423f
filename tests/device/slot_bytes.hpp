#pragma once

#include <vector>

#include "tessera/device/engine.hpp"

namespace tessera::device {

// Returns the bytes of rows without the gaps between them.
inline std::vector<int> contents(ByteRows rows) {
  std::vector<int> result;
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t b = 0; b < rows.row_bytes; ++b)
      result.push_back(int(rows.data[r * rows.stride + b]));
  return result;
}

}  // namespace tessera::device
