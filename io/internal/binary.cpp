#include "tessera/io/internal/binary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tessera/base/error.hpp"

namespace tessera::io {

std::int64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::F64:
    case ElementType::I64:
    case ElementType::U64:
      return 8;
    case ElementType::F32:
    case ElementType::I32:
    case ElementType::U32:
      return 4;
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::I16:
    case ElementType::U16:
      return 2;
    case ElementType::I8:
    case ElementType::U8:
    case ElementType::Bool:
      return 1;
    case ElementType::Text:
      return 0;
  }
  return 0;
}

namespace internal {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied byte by byte, which needs a little-endian machine");

template <class T>
T take(const char* at, bool big_endian) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (big_endian) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

double number_at(const char* at, Encoding e) {
  switch (e.type) {
    case ElementType::F64:
      return take<double>(at, e.big_endian);
    case ElementType::F32:
      return double(take<float>(at, e.big_endian));
    case ElementType::F16:
      return double(float(Half::from_bits(take<std::uint16_t>(at, e.big_endian))));
    case ElementType::BF16:
      return double(float(BFloat16::from_bits(take<std::uint16_t>(at, e.big_endian))));
    case ElementType::I64:
      return double(take<std::int64_t>(at, e.big_endian));
    case ElementType::I32:
      return take<std::int32_t>(at, e.big_endian);
    case ElementType::I16:
      return take<std::int16_t>(at, e.big_endian);
    case ElementType::I8:
      return take<std::int8_t>(at, e.big_endian);
    case ElementType::U64:
      return double(take<std::uint64_t>(at, e.big_endian));
    case ElementType::U32:
      return take<std::uint32_t>(at, e.big_endian);
    case ElementType::U16:
      return take<std::uint16_t>(at, e.big_endian);
    case ElementType::U8:
      return take<std::uint8_t>(at, e.big_endian);
    case ElementType::Bool:
      return *at != 0 ? 1 : 0;
    case ElementType::Text:
      break;
  }
  return 0;
}

}  // namespace

void fail_at(std::string_view name, std::int64_t offset, const std::string& message) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: byte {}: {}", name, offset, message));
}

std::vector<double> decode_numbers(std::string_view bytes, std::int64_t count, Encoding encoding,
                                   std::string_view name, std::int64_t offset) {
  const std::int64_t size = bytes_of(encoding.type);
  const bool is_long = encoding.type == ElementType::I64 || encoding.type == ElementType::U64;
  TESSERA_ASSERT(size > 0 && std::int64_t(bytes.size()) / size >= count);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = number_at(bytes.data() + i * size, encoding);
    if (is_long && std::abs(value) > 0x1p53)
      fail_at(name, offset + i * size,
              fmt::format("whole number {:.0f} is beyond 2^53 in magnitude", value));
    values[std::size_t(i)] = value;
  }
  return values;
}

std::int64_t count_elements(const std::vector<std::int64_t>& shape, std::int64_t most,
                            std::string_view name, std::int64_t offset) {
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  std::int64_t count = 1;
  for (const std::int64_t side : shape) {
    if (side < 0)
      fail_at(name, offset, fmt::format("a side of the shape is {}; the least is 0", side));
    if (!is_empty && side > most / count)
      fail_at(name, offset,
              fmt::format("the shape has more than the {} elements that the file can hold", most));
    count *= is_empty ? 1 : side;
  }
  return is_empty ? 0 : count;
}

template <class T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template void append_bytes(std::string&, float);
template void append_bytes(std::string&, double);
template void append_bytes(std::string&, Half);
template void append_bytes(std::string&, std::int32_t);
template void append_bytes(std::string&, std::int64_t);
template void append_bytes(std::string&, std::uint8_t);
template void append_bytes(std::string&, std::uint16_t);
template void append_bytes(std::string&, std::uint64_t);

}  // namespace internal
}  // namespace tessera::io
