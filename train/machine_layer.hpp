#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::train {

// A layer of one group on a modelled machine, as a Network trains it: a TrainableLayer (layer.hpp).
// The passes are those of runtime::FullyConnected with float operands. Bias, ReLU, its derivative
// and changes of values are plain loops on this computer, which the modelled cycles do not contain.
// One thread at a time uses an object.
class MachineLayer {
 public:
  // Takes the layer of a problem with one group in float. The executor runs the loops over operands
  // and must outlive the object.
  MachineLayer(runtime::FullyConnected layer, Executor& executor)
      : layer_(std::move(layer)), executor_(&executor) {}

  // The functions of runtime::FullyConnected with these names.
  std::optional<partitioner::Misfit> set_weights(const sparse::Csr<float>& weights) {
    return layer_.set_weights(weights);
  }
  void set_values(std::span<const float> values) { layer_.set_values(values); }
  const sparse::Csr<float>& weights(std::int64_t group = 0) const { return layer_.weights(group); }
  Bytes pattern_bytes() const { return layer_.pattern_bytes(); }

  // Calls change(part, 0) with a copy of all values, and gives the layer the values that it leaves
  // there. An exception of `change` reaches the caller, and the layer has its old values. Costs
  // set_values and a copy; allocates nothing from the second call on.
  template <class Change>
  void change_values(Change&& change) {
    const std::vector<float>& now = weights().values;
    values_.assign(now.begin(), now.end());
    change(std::span<float>(values_), std::int64_t{0});
    layer_.set_values(values_);
  }

  // The passes, with the bits of a loop over all results after the pass.
  template <class T>
  void forward(MatrixView<const T> s, MatrixView<T> q, const host::ForwardOptions& after = {});
  template <class T>
  void grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
              const host::GradAOptions<T>& after = {});
  template <class T>
  void grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

  // Returns the modelled steps of the last run of a pass; none before the first one.
  const device::Ledger& last_run(Pass pass) const { return runs_[std::size_t(pass)]; }

 private:
  device::Ledger& run_of(Pass pass) { return runs_[std::size_t(pass)]; }

  runtime::FullyConnected layer_;
  Executor* executor_;
  std::array<device::Ledger, 3> runs_;
  std::vector<float> values_;  // scratch of change_values
};

}  // namespace tessera::train
