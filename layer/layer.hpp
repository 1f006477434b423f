#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <typeinfo>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/layer/backend.hpp"

namespace tessera::layer {

// A sparse fully connected layer, whatever computes it: this computer (host::HostLayer), a modelled
// machine (runtime::FullyConnected, runtime::StaticLayer), a pod of machines (pod::PodLayer) or
// many processes (distributed::RankLayer). For each group g it computes
//
//   Fwd    Q[x][z]  = R[x][y] * S[y][z]
//   GradA  dS[y][z] = transpose(R) * dQ[x][z]
//   GradW  dR       = dQ[x][z] * transpose(S[y][z]), where R has non-zeros
//
// Operands of all groups are stored one below the other in strided views: S is [g * y][z], Q is
// [g * x][z]. Every call is checked in one place, whatever the target: Error{InvalidArgument} for
// an operand of another shape or type, for results that share memory with an operand, for a pass
// that the layer does not have, and for a pass before the first weights. One thread at a time may
// use a layer: a call that is not const is refused with Error{InvalidArgument} while another one is
// running. A layer that was moved from may be destroyed and assigned to; all else is refused.
class Layer {
 public:
  // Runs a pass on any target. Costs what the target says.
  Outcome run(Pass pass, const Operands& operands, const PassOptions& options = {}) {
    return backend().run_and_keep_cost(pass, operands, options);
  }

  // Returns what the layer is and can do. O(groups).
  LayerFacts facts() const { return backend().facts(); }

 protected:
  // `State` is the type of the backend; its name without the last part is that of the layer.
  template <class State>
  explicit Layer(std::unique_ptr<State> backend)
      : backend_(std::move(backend)), type_(&typeid(State)) {}
  Layer(Layer&&) noexcept = default;
  Layer& operator=(Layer&&) noexcept = default;
  ~Layer() = default;

  Backend& backend() const {
    if (!backend_) tessera::internal::refuse_moved_from(*type_);
    return *backend_;
  }

 private:
  std::unique_ptr<Backend> backend_;
  const std::type_info* type_;
};

// A layer whose passes cost a CostT. T is the C++ type of the problem's data type: float, Half or
// BFloat16.
template <class CostT>
class LayerOf : public Layer {
 public:
  using Cost = CostT;

  // Write q [g * x][z] from s [g * y][z]; s_grad [g * y][z] from q_grad [g * x][z]; and the
  // gradients of all groups' values from q_grad and s, group after group in the order of weights().
  // Return the cost. Throw Error{InvalidArgument} for options that can stop the pass, since nothing
  // would tell that it was stopped.
  template <class T>
  CostT forward(MatrixView<const T> s, MatrixView<T> q, const PassOptions& options = {}) {
    return cost_of(Pass::Fwd, {.in = s, .out = q}, options);
  }
  template <class T>
  CostT grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad, const PassOptions& options = {}) {
    return cost_of(Pass::GradA, {.in = q_grad, .out = s_grad}, options);
  }
  template <class T>
  CostT grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
               const PassOptions& options = {}) {
    return cost_of(Pass::GradW, {.in = q_grad, .in_s = s, .gradients = gradients}, options);
  }

  // The same passes, which may be stopped. They return false if options.stop ended the pass, and
  // overwrite `cost`; the caller may use the same one for every call.
  template <class T>
  [[nodiscard]] bool forward(MatrixView<const T> s, MatrixView<T> q, const PassOptions& options,
                             CostT& cost) {
    return own().run(Pass::Fwd, {.in = s, .out = q}, options, cost);
  }
  template <class T>
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const PassOptions& options, CostT& cost) {
    return own().run(Pass::GradA, {.in = q_grad, .out = s_grad}, options, cost);
  }
  template <class T>
  [[nodiscard]] bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, const PassOptions& options, CostT& cost) {
    return own().run(Pass::GradW, {.in = q_grad, .in_s = s, .gradients = gradients}, options, cost);
  }

 protected:
  using Layer::Layer;

 private:
  BackendOf<CostT>& own() const { return static_cast<BackendOf<CostT>&>(backend()); }

  CostT cost_of(Pass pass, const Operands& operands, const PassOptions& options) {
    if (options.stop.stop_possible())
      throw Error(ErrorCode::InvalidArgument,
                  "a pass that may be stopped needs a cost to write to: forward(s, q, options, "
                  "cost) returns whether it finished");
    CostT cost;
    static_cast<void>(own().run(pass, operands, options, cost));
    return cost;
  }
};

}  // namespace tessera::layer
