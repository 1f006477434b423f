#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/io/internal/binary.hpp"

namespace tessera::io::internal {

// The part of a .npy file before its numbers.
struct NpyHead {
  Encoding encoding;
  std::int64_t element_bytes = 0;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_begin = 0;  // offset of the first number
};

// The bytes that hold the head of any file that the readers take.
constexpr std::int64_t kLongestNpyHead = 12 + 65536;

// Reads the head from the first bytes of a file; what follows it is not looked at. Throws as
// read_npy does.
NpyHead read_npy_head(std::string_view bytes, std::string_view name);

}  // namespace tessera::io::internal
