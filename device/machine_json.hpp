#pragma once

#include <string_view>

#include "tessera/device/machine.hpp"
#include "tessera/json/value.hpp"

namespace tessera::device {

// Reads a machine from a parsed value, for texts that contain more than a machine. Throws
// Error{BadInput} as the function of the same name for texts does.
Machine machine_from_value(const json::Value& value, std::string_view where);

}  // namespace tessera::device
