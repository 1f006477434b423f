#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/network_layer.hpp"
#include "tessera/runtime/internal/network_loss.hpp"
#include "tessera/runtime/internal/network_update.hpp"

namespace tessera::runtime {

// A network with its program. The constructor declares all steps in the order in which they run,
// adds the slots, checks the memory and prepares the exchanges.
struct Network::State {
  State(const NetworkSpec& spec, std::span<const planner::Plan> plans,
        const device::Machine& machine, device::ExchangeMode mode, Executor& executor);

  internal::NetworkLayerState& at(std::int64_t layer);
  std::optional<partitioner::Misfit> set_weights(internal::NetworkLayerState& layer,
                                                 const sparse::Csr<float>& weights);
  sparse::Csr<float> weights_of(internal::NetworkLayerState& layer) const;

  void check_batch(const NetworkBatch& batch) const;
  bool run(const NetworkBatch& batch, const RunOptions& options, NetworkCost& cost);

  // Begins a call that changes the network. Throws Error{InvalidArgument} if one is running.
  [[nodiscard]] OneCaller::Call enter(std::string_view function) { return caller_.enter(function); }

  NetworkSpec spec;
  internal::BoundProgram program;
  device::Engine engine;
  std::deque<internal::NetworkLayerState> layers;
  std::deque<internal::NetworkUpdate> updates;  // of a training step, by layer
  std::optional<internal::NetworkLoss> loss;
  std::vector<NetworkPart> parts;
  Matrix<float> outputs;

 private:
  void begin(NetworkWork work, std::size_t layer);
  void declare_loads();
  void declare_forward();
  void declare_backward();
  void declare_gradient_of(std::size_t layer, const internal::TensorHome& from);
  void hand_over(const internal::TensorHome& from, const internal::TensorHome& to);
  void load_inputs();
  void collect_outputs();
  bool trains() const { return spec.loss.has_value(); }

  std::deque<internal::HandOver> hand_overs_;
  std::vector<std::byte> inputs_;  // [inputs][batch] in the sizes of the first layer's grid
  const NetworkBatch* batch_ = nullptr;
  OneCaller caller_;
};

}  // namespace tessera::runtime
