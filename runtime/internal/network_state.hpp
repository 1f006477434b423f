#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/network_biases.hpp"
#include "tessera/runtime/internal/network_dense_layer.hpp"
#include "tessera/runtime/internal/network_loss.hpp"
#include "tessera/runtime/internal/network_sparse_layer.hpp"

namespace tessera::runtime {

// A network with its program. The constructor declares all steps in the order in which they run,
// and checks the memory.
struct Network::State {
  State(const NetworkSpec& spec, std::span<const planner::Plan> plans,
        const device::Machine& machine, device::ExchangeMode mode, Executor& executor);

  internal::NetworkLayerState& at(std::int64_t layer);

  // Returns the sum of some bytes of all layers.
  Bytes sum(Bytes (internal::NetworkLayerState::*bytes)() const) const {
    Bytes all;
    for (const auto& layer : layers) all += (*layer.*bytes)();
    return all;
  }

  // Throws Error{InvalidArgument} unless every layer has weights.
  void check_weights() const;
  bool run(const NetworkBatch& batch, const PassOptions& options, NetworkCost& cost);

  // Begins a call that changes the network. Throws Error{InvalidArgument} if one is running.
  [[nodiscard]] OneCaller::Call enter(std::string_view function) { return caller_.enter(function); }

  NetworkSpec spec;
  internal::TileProgram program;
  std::vector<std::unique_ptr<internal::NetworkLayerState>> layers;
  std::optional<internal::NetworkBiases> biases;  // of a training step
  std::optional<internal::NetworkLoss> loss;
  std::vector<NetworkPart> parts;
  Matrix<float> outputs;

 private:
  // The homes of the operands of a layer that asks for its own, and the exchanges that bring them.
  struct OwnHomes {
    internal::TensorHome s, dq;
    std::optional<internal::Fetches> bring_s, bring_dq;
  };
  void hand_over(std::size_t layer, const internal::TensorHome& from, internal::TensorHome& to,
                 std::optional<internal::Fetches>& bring);
  void make_layers(std::span<const planner::Plan> plans, Executor& executor);
  void seal();
  void begin(NetworkWork work, std::size_t layer);
  void connect(std::span<const planner::Plan> plans);
  void connect_gradient(std::size_t layer);
  void declare_loads();
  void declare_forward();
  void declare_again(std::size_t layer);
  void declare_backward();
  void declare_loss();
  bool trains() const { return spec.loss.has_value(); }
  void check_loss(const NetworkBatch& batch) const;

  std::optional<internal::Fetches> back_from_loss_;
  internal::TensorHome inputs_;  // equal shares on the tiles that need a slice
  std::vector<OwnHomes> own_;    // by layer
  const NetworkBatch* batch_ = nullptr;
  OneCaller caller_;
};

}  // namespace tessera::runtime
