#pragma once

#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime::internal {

// Runs verify::check_product on every group of a layer and collects the checksums of all groups in
// `all`. Operands and results of all groups are stored one below the other. For GradA the weights
// are transposed first. Throws Error{CheckFailed} with pass, group and place if sums do not agree.
template <class T>
void check_layer_product(Pass pass, const LayerWeights& weights, MatrixView<const T> in,
                         MatrixView<const T> out, const verify::Rounding& rounding,
                         verify::Checksums& all);

// Does the same with verify::check_gradient.
template <class T>
void check_layer_gradient(std::span<const sparse::Csr<float>> gradients, MatrixView<const T> q_grad,
                          MatrixView<const T> s, const verify::Rounding& rounding,
                          verify::Checksums& all);

}  // namespace tessera::runtime::internal
