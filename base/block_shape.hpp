#pragma once

#include <cstdint>

namespace tessera {

// The size of one non-zero block in elements; 1 x 1 is a single element. The values of a block are
// stored row-major.
struct BlockShape {
  std::int64_t rows = 1, cols = 1;

  friend bool operator==(const BlockShape&, const BlockShape&) = default;
  constexpr std::int64_t area() const { return rows * cols; }
  constexpr bool is_element() const { return rows == 1 && cols == 1; }
  constexpr BlockShape transposed() const { return {cols, rows}; }
};

}  // namespace tessera
