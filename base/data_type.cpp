#include "tessera/base/data_type.hpp"

#include "tessera/base/named.hpp"

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
  return named(name, {DataType::Float, DataType::Half, DataType::BFloat16}, "data type");
}

}  // namespace tessera
