#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/half.hpp"

namespace tessera {

// The element types in which a layer can be stored. The type of sums (partials) is a separate
// field where it is needed.
enum class DataType { Float, Half, BFloat16 };

// Returns the size of one element in bytes.
constexpr std::int64_t bytes_of(DataType type) { return type == DataType::Float ? 4 : 2; }

// Returns "float", "half" or "bfloat16".
std::string to_string(DataType type);

// Returns the type of a name that to_string writes. Throws Error{InvalidArgument}, which lists the
// legal names, for any other text.
DataType parse_data_type(std::string_view name);

// Returns the DataType of the C++ type float, Half or BFloat16.
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

// The rounding of a type.
//   unit      half the distance from 1 to the next number: |rounded - exact| <= unit * |exact|
//   smallest  the smallest number above 0, which bounds the loss through underflow
struct Precision {
  double unit, smallest;
};

// Returns the rounding of a type.
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

// Calls run(value) with a zero of the C++ type that stores `type`, and returns its result. Example:
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
