#include "tessera/train/machine_layer.hpp"

#include "tessera/train/internal/neurons.hpp"

namespace tessera::train {

template <class T>
void MachineLayer::forward(MatrixView<const T> s, MatrixView<T> q,
                           const host::ForwardOptions& after) {
  static_cast<void>(  // it cannot be stopped
      layer_.forward<T>(s, q, runtime::RunOptions(), run_of(Pass::Fwd)));
  if (!after.bias.empty()) internal::add_bias(q, after.bias, *executor_);
  if (after.relu) internal::apply_relu(q, *executor_);
}

template <class T>
void MachineLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                          const host::GradAOptions<T>& after) {
  static_cast<void>(layer_.grad_a<T>(q_grad, s_grad, runtime::RunOptions(), run_of(Pass::GradA)));
  if (after.where_positive.data != nullptr)
    internal::pass_where_positive(after.where_positive, s_grad, *executor_);
}

template <class T>
void MachineLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                          std::span<float> gradients) {
  static_cast<void>(
      layer_.grad_w<T>(q_grad, s, gradients, runtime::RunOptions(), run_of(Pass::GradW)));
}

template void MachineLayer::forward(MatrixView<const float>, MatrixView<float>,
                                    const host::ForwardOptions&);
template void MachineLayer::grad_a(MatrixView<const float>, MatrixView<float>,
                                   const host::GradAOptions<float>&);
template void MachineLayer::grad_w(MatrixView<const float>, MatrixView<const float>,
                                   std::span<float>);

}  // namespace tessera::train
