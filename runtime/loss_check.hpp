#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/base/matrix.hpp"

// The end of a training run whose loss is not finite: nothing that it computes from then on is
// worth anything, so it is an error and not a figure.
namespace tessera::runtime {

// Returns the largest magnitude of the values, which is NaN if one of them is.
template <class T>
double largest_magnitude(MatrixView<const T> values) {
  double largest = 0;
  for (std::int64_t row = 0; row < values.rows; ++row)
    for (std::int64_t col = 0; col < values.cols; ++col) {
      const double size = std::abs(double(float(values(row, col))));
      if (std::isnan(size)) return size;
      if (size > largest) largest = size;
    }
  return largest;
}

// Throws Error{InvalidArgument} with the loss and the layer, counted from 1, whose result has the
// largest value, the first NaN before all others. `what` names the loss with its step, for example
// "training: the loss of step 3"; `largest` has the largest_magnitude() of the result of each
// layer.
[[noreturn]] void refuse_loss(std::string_view what, double loss, std::span<const double> largest);

}  // namespace tessera::runtime
