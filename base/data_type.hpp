#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/half.hpp"

namespace tessera {

// Element types a layer can be stored in. Sums are named separately (partials).
enum class DataType { Float, Half, BFloat16 };

// Bytes of one element.
constexpr std::int64_t bytes_of(DataType type) { return type == DataType::Float ? 4 : 2; }

// "float", "half", "bfloat16".
std::string to_string(DataType type);
// The inverse; Error{InvalidArgument} that lists the legal names.
DataType parse_data_type(std::string_view name);

// The DataType of float, Half or BFloat16.
template <class T>
constexpr DataType data_type_of();
template <>
constexpr DataType data_type_of<float>() {
  return DataType::Float;
}
template <>
constexpr DataType data_type_of<Half>() {
  return DataType::Half;
}
template <>
constexpr DataType data_type_of<BFloat16>() {
  return DataType::BFloat16;
}

// How the numbers of a type round.
//   unit      half the distance from 1 to the next number: |rounded - exact| <= unit * |exact|
//   smallest  the smallest number above 0, which bounds what underflow can lose
struct Precision {
  double unit, smallest;
};
constexpr Precision precision_of(DataType type) {
  switch (type) {
    case DataType::Half:
      return {0x1p-11, 0x1p-24};
    case DataType::BFloat16:
      return {0x1p-8, 0x1p-133};
    case DataType::Float:
      break;
  }
  return {0x1p-24, 0x1p-149};
}

// run(value) with a value of the C++ type that stands for `type`. Example:
//   with_type(DataType::Half, [](auto zero) { return sizeof(zero); })   // 2
template <class Run>
decltype(auto) with_type(DataType type, Run&& run) {
  switch (type) {
    case DataType::Half:
      return run(Half());
    case DataType::BFloat16:
      return run(BFloat16());
    case DataType::Float:
      break;
  }
  return run(0.0f);
}

}  // namespace tessera
