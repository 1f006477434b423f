#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/array.hpp"

namespace tessera::io::internal {

// Throws Error{BadInput} "<name>: byte <offset>: <message>".
[[noreturn]] void fail_at(std::string_view name, std::int64_t offset, const std::string& message);

// The representation of one number in a file.
struct Encoding {
  ElementType type = ElementType::F64;
  bool big_endian = false;
};

// Returns the first `count` numbers of `bytes`, which must be long enough. `offset` is the offset
// of `bytes` in the file, for messages. Throws Error{BadInput} for whole numbers beyond 2^53.
std::vector<double> decode_numbers(std::string_view bytes, std::int64_t count, Encoding encoding,
                                   std::string_view name, std::int64_t offset);

// Returns the product of a shape. Throws Error{BadInput} for a negative side or a product above
// `most`.
std::int64_t count_elements(const std::vector<std::int64_t>& shape, std::int64_t most,
                            std::string_view name, std::int64_t offset);

// Appends the little-endian bytes of a number.
template <class T>
void append_bytes(std::string& out, T value);

}  // namespace tessera::io::internal
