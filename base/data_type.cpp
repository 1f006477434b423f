#include "tessera/base/data_type.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

std::string to_string(DataType type) { return type == DataType::Float ? "float" : "half"; }

DataType parse_data_type(std::string_view name) {
  if (name == "float") return DataType::Float;
  if (name == "half") return DataType::Half;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("data type \"{}\" is not known; use float or half", name));
}

}  // namespace tessera
