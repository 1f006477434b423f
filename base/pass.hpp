#pragma once

#include <string>

namespace tessera {

// The three passes of a layer: forward, gradient of the input, gradient of the weights.
enum class Pass { Fwd, GradA, GradW };

// Returns "Fwd", "GradA" or "GradW".
std::string to_string(Pass pass);

}  // namespace tessera
