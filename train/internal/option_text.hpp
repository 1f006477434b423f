#pragma once

#include <string>

#include "tessera/train/trainer.hpp"

namespace tessera::train::internal {

// Returns options as one line, for example "784,1024,10, density 0.1 uniform, block 1x1, batch 128,
// seed 1". Options that train differently have different lines, but for the functions of Custom
// methods.
std::string text_of(const NetworkOptions& options);
std::string text_of(const TrainOptions& options);

}  // namespace tessera::train::internal
