#include "tessera/base/data_type.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

std::string to_string(DataType type) {
  switch (type) {
    case DataType::Float:
      return "float";
    case DataType::Half:
      return "half";
    case DataType::BFloat16:
      return "bfloat16";
  }
  return "?";
}

DataType parse_data_type(std::string_view name) {
  for (const DataType type : {DataType::Float, DataType::Half, DataType::BFloat16})
    if (name == to_string(type)) return type;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("data type \"{}\" is not known; use float, half or bfloat16", name));
}

}  // namespace tessera
