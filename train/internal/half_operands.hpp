#pragma once

#include "tessera/base/pass.hpp"
#include "tessera/layer/layer.hpp"

namespace tessera::train::internal {

// Runs a pass of a layer in half on operands of floats: rounds them, and widens the results.
// Gradients of outputs are first scaled by a power of two, so that the largest is near 16, and
// results are scaled back: small gradients would else become 0. Takes no options of passes.
layer::Outcome run_in_half(layer::Layer& layer, Pass pass, const layer::Operands& operands);

// Returns the power of two by which the largest magnitude comes to be in [8, 16); 1 if all are 0 or
// one is not finite.
float scale_of(MatrixView<const float> gradients);

// Returns the numbers, multiplied by the scale, in half.
Matrix<Half> rounded(MatrixView<const float> from, float scale = 1);

}  // namespace tessera::train::internal
