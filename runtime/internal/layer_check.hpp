#pragma once

#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime::internal {

// check_product and check_gradient for a layer: group by group, all of them together in `all`.
// Operands and results are those of all groups, one below the other. GradA takes the transpose of
// the weights. Error{CheckFailed} naming pass, group and place when sums do not agree.
template <class T>
void check_layer_product(Pass pass, const LayerWeights& weights, MatrixView<const T> in,
                         MatrixView<const T> out, const verify::Rounding& rounding,
                         verify::Checksums& all);
template <class T>
void check_layer_gradient(std::span<const sparse::Csr<float>> gradients, MatrixView<const T> q_grad,
                          MatrixView<const T> s, const verify::Rounding& rounding,
                          verify::Checksums& all);

}  // namespace tessera::runtime::internal
