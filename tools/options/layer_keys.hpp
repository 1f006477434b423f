#pragma once

#include <optional>
#include <string>

#include "tessera/base/data_type.hpp"

namespace tessera::tools {

// The options of PopSparse that belong to the layer in this project.
struct LayerKeys {
  std::optional<bool> grad_a, grad_w;     // doGradAPass, doGradWPass
  std::optional<DataType> partials_type;  // partialsType
};

// Removes these keys from the text of options and returns their values. A text without them, or one
// that is not a JSON object, is not changed; the option parser reports its errors. Throws
// Error{InvalidArgument}, which names `where`, the key, its value and the legal values. Switches
// may also be strings, as in PopSparse.
LayerKeys take_layer_keys(std::string& json, const std::string& where);

}  // namespace tessera::tools
