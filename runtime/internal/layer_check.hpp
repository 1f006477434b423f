#pragma once

#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/self_check.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::runtime::internal {

// What a layer checks of its own results, group by group, when it is told to.
struct LayerCheck {
  bool on = false;
  Checksums last;  // of the last pass that was checked, all groups together

  // Do nothing when off. Error{CheckFailed} naming pass, group and place when sums do not agree.
  // Operands and results are those of all groups, one below the other. GradA takes the transpose of
  // the weights.
  template <class T>
  void product(planner::Pass pass, const LayerWeights& weights, MatrixView<const T> in,
               MatrixView<const T> out, const Rounding& rounding);
  template <class T>
  void gradient(std::span<const sparse::Csr<float>> gradients, MatrixView<const T> q_grad,
                MatrixView<const T> s, const Rounding& rounding);

 private:
  void add(planner::Pass pass, std::int64_t group, const Checksums& checksums);
};

}  // namespace tessera::runtime::internal
