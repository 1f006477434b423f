#pragma once

#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/codelets/activation.hpp"

namespace tessera::host {

using codelets::Activation;

// Applies an activation to values with the bits of a pass in float: Relu replaces values below 0 by
// 0, and NaN and -0 remain; Gelu is codelets::apply_gelu().
inline void activate(Activation activation, std::span<float> values) {
  switch (activation) {
    case Activation::None:
      return;
    case Activation::Relu:
      for (float& v : values) v = v < 0 ? 0 : v;
      return;
    case Activation::Gelu:
      return codelets::apply_gelu(values.data(), std::ssize(values));
  }
}

// Work that a forward pass does on each part of Q as soon as the part is complete, while it is in a
// near cache. Q has the bits of a loop over all of it after the pass: bias, then the activation.
struct ForwardOptions {
  // [g * x] The number that is added to each row of Q, rounded to the layer's type after the
  // addition. Empty: none.
  std::span<const float> bias = {};

  // The function that is applied to Q with its bias (activate()).
  Activation activation = Activation::None;
};

// Work that the GradA pass does on each part of dS as soon as the part is complete: it multiplies
// by the derivative of a ReLU in front of the layer. dS has the bits of a loop over all of it after
// the pass.
template <class T>
struct GradAOptions {
  // [g * y][z] Elements of dS become 0 where this matrix is not above 0 (or is NaN). Without data
  // all elements remain.
  MatrixView<const T> where_positive = {};
};

// Says whether the GradW pass replaces the gradients that the caller passes or adds to them.
enum class Accumulate {
  No,  // replaces them
  Yes  // adds to them, with the bits of a loop that adds the gradients of this pass
};

}  // namespace tessera::host
