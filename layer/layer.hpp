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
// an operand of another shape or type or at a null pointer, for results that share memory with an
// operand, for a pass that the layer does not have, and for a pass before the first weights. One
// thread at a time may use a layer: a call that is not const is refused with Error{InvalidArgument}
// while another one is running. A layer that was moved from may be destroyed and assigned to; all
// else is refused.
class Layer {
 public:
  using PreparedUpdate = layer::PreparedUpdate;

  // Takes a matrix [x][y] in the problem's block for each group, rows and columns in whole blocks
  // (Problem::size_in_blocks). Returns what did not fit the target's memory; every pattern fits
  // this computer. Values are rounded to the layer's type. Throws Error{InvalidArgument} if number,
  // shape or block of the matrices are not the layer's, or if its pattern stays (facts()), and
  // Error{BadInput} for a finite value that would be infinite in the layer's type. After a misfit
  // or an exception the layer has the weights it had before. A matrix that the caller moves in is
  // not copied.
  std::optional<partitioner::Misfit> set_weights(
      std::span<const sparse::CheckedCsr<float>> weights);
  std::optional<partitioner::Misfit> set_weights(sparse::CheckedCsr<float> weights);

  // Removes and adds blocks of a group's pattern, in blocks of the problem. Remaining blocks keep
  // their values and added ones are 0: the layer has sparse::with_change(weights(group), change).
  // Throws Error{InvalidArgument} as with_change does. What did not fit, and errors, leave the
  // weights as they were.
  std::optional<partitioner::Misfit> update_weights(const sparse::PatternChange& change,
                                                    std::int64_t group = 0);

  // Does all of update_weights that may fail, and leaves the weights as they are: several layers
  // then change together or not at all. Throws as update_weights.
  PreparedUpdate prepare_update(const sparse::PatternChange& change, std::int64_t group = 0);

  // Makes the change. Throws Error{InvalidArgument} if it was prepared by another layer, did not
  // fit or was moved from, or if a pattern or values of the layer have changed since; and otherwise
  // nothing.
  void commit(PreparedUpdate&& update);

  // Sets new values for a group's pattern, in the order of weights(group).values. Throws
  // Error{BadInput} as set_weights does, and Error{InvalidArgument} for another number of values.
  // O(values).
  void set_values(std::span<const float> values, std::int64_t group = 0);

  // Calls change(part, first) for parts of weights(group).values, where `part` is a
  // std::span<float> whose first element has position `first`; together the parts are all values,
  // each once. The function changes them in place. Throws Error{BadInput} as set_weights does.
  // After that, and after an exception of `change`, which reaches the caller, the layer has the
  // values that are in weights(group); a part with a refused value keeps those that it had.
  // O(values); allocates nothing from the second call on. On this computer the parts are small,
  // calls come from all threads of the executor at the same time, and the cells of all passes are
  // filled from each part while it is in a near cache; elsewhere there is one part. Example:
  // layer.change_values([&](std::span<float> part, std::int64_t first) {
  //            for (std::size_t i = 0; i < part.size(); ++i) part[i] -= 0.1f * gradient[first + i];
  //          });
  template <class Change>
  void change_values(Change&& change, std::int64_t group = 0) {
    change_parts(ChangePart(change), group);
  }

  // Returns the weights of a group as they were given and changed since, not rounded.
  const sparse::Csr<float>& weights(std::int64_t group = 0) const {
    check_group(group);
    return backend().weights_of(group);
  }

  // Return the number of columns that the layer was planned for, and the number of values of all
  // groups, 0 before the first weights.
  std::int64_t batch() const { return facts().problem.size.z; }
  std::int64_t values() const { return facts().values; }

  // Returns the types and the number of sums of a pass over the planned number of columns, from
  // which verify/ computes the bound of its error. Throws Error{InvalidArgument} for a pass that
  // the layer does not have.
  verify::Rounding rounding(Pass pass) const;

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

  // Throws Error{InvalidArgument} before the first weights, and unless the layer has the group.
  // O(groups).
  void check_group(std::int64_t group) const;

  Backend& backend() const {
    if (!backend_) tessera::internal::refuse_moved_from(*type_);
    return *backend_;
  }

 private:
  std::optional<partitioner::Misfit> set_all(std::vector<sparse::CheckedCsr<float>> weights);
  void change_parts(const ChangePart& change, std::int64_t group);
  Backend& changeable(const char* call) const;

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
    Backend::check_is_whole(pass, options);
    CostT cost;
    static_cast<void>(own().run(pass, operands, options, cost));
    return cost;
  }
};

}  // namespace tessera::layer
