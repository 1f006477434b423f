#pragma once

#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/layer/pass_options.hpp"

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

using layer::Accumulate;
using layer::PassOptions;

}  // namespace tessera::host
