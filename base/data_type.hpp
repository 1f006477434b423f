#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/half.hpp"

namespace tessera {

// Element types a layer can be stored in. Sums are named separately (partials).
enum class DataType { Float, Half };

constexpr std::int64_t bytes_of(DataType type) { return type == DataType::Float ? 4 : 2; }

// "float", "half".
std::string to_string(DataType type);
// The inverse; Error{InvalidArgument} that lists the legal names.
DataType parse_data_type(std::string_view name);

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

}  // namespace tessera
