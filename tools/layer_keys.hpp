#pragma once

#include <optional>
#include <string>

#include "tessera/base/data_type.hpp"

namespace tessera::tools {

// What PopSparse keeps among its options and we keep with the layer.
struct LayerKeys {
  std::optional<bool> grad_a, grad_w;     // doGradAPass, doGradWPass
  std::optional<DataType> partials_type;  // partialsType
};

// Takes these keys out of option text. A text without them, or that is no JSON object, stays as it
// is: its faults are the option parser's to name. Error{InvalidArgument} names `where`, the key,
// its value and what is legal. Switches may also be strings, as PopSparse's own are.
LayerKeys take_layer_keys(std::string& json, const std::string& where);

}  // namespace tessera::tools
