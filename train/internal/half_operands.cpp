#include "tessera/train/internal/half_operands.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/half.hpp"
#include "tessera/train/internal/row_loops.hpp"

namespace tessera::train::internal {

layer::Outcome run_in_half(layer::Layer& layer, Pass pass, const layer::Operands& operands) {
  const auto in = operands.in.as<float>();
  const float scale = pass == Pass::Fwd ? 1.0f : scale_of(in);
  const Matrix<Half> in_half = rounded(in, scale);
  if (pass == Pass::GradW) {
    const Matrix<Half> s = rounded(operands.in_s.as<float>());
    const layer::Outcome outcome =
        layer.run(pass, {.in = in_half.view(), .in_s = s.view(), .gradients = operands.gradients});
    for (float& gradient : operands.gradients) gradient /= scale;
    return outcome;
  }
  const auto out = operands.out.as<float>();
  Matrix<Half> results(out.rows, out.cols);
  const layer::Outcome outcome = layer.run(pass, {.in = in_half.view(), .out = results.view()});
  copy_rounded(std::as_const(results).view(), out, 1 / scale);
  return outcome;
}

float scale_of(MatrixView<const float> gradients) {
  float largest = 0;
  for (std::int64_t r = 0; r < gradients.rows; ++r)
    for (std::int64_t c = 0; c < gradients.cols; ++c)
      largest = std::max(largest, std::abs(gradients(r, c)));
  constexpr int kExponent = 4;
  int exponent = 0;
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  std::frexp(largest, &exponent);  // largest is in [2^(exponent - 1), 2^exponent)
  return std::ldexp(1.0f, kExponent - exponent);
}

Matrix<Half> rounded(MatrixView<const float> from, float scale) {
  Matrix<Half> to(from.rows, from.cols);
  copy_rounded(from, to.view(), scale);
  return to;
}

}  // namespace tessera::train::internal
