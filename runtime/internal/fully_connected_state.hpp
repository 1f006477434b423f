#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/matmul.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layer_on_tiles.hpp"

namespace tessera::runtime {

namespace internal {

class SparseLayer;

}  // namespace internal

// The state of a layer, which is a SparseLayer or a DenseLayer: fully_connected.cpp has the checks
// of its changes, dense_gradients.cpp what looks at the gradient outside the pattern.
struct FullyConnected::State : internal::LayerOnTiles {
  State(const Problem& of, const planner::Plan& plan, const device::Machine& on,
        device::ExchangeMode how, Executor& threads);

  // Return the figures of FullyConnected with these names; there are weights.
  virtual Bytes pattern_bytes() const = 0;
  virtual partitioner::SpillStats spill() const = 0;
  virtual partitioner::Travel travel() const = 0;

  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> weights) override {
    return set_weights(weights, {});
  }
  std::optional<partitioner::Misfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights,
                                                 const partitioner::EncodeOptions& options);
  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override;
  void commit(layer::PreparedUpdate::State& update) override;
  std::optional<partitioner::Misfit> update_weights(const sparse::PatternChange& change,
                                                    std::int64_t group) override;
  void set_values(std::span<const float> values, std::int64_t group) override;
  void restore_weights(const partitioner::SavedWeights& saved);

  const device::ExchangeMode mode;
  const Bytes buckets;  // of each tile: what a search leaves free

  // The last search for large gradients, and the number of places that it was planned for.
  std::optional<DenseGradW> search = {};
  std::int64_t searched = 0;

  // Returns the machine without the memory of the buckets.
  device::Machine beside_buckets() const {
    device::Machine rest = machine;
    rest.tile_memory -= buckets;
    return rest;
  }

  // Throws Error{InvalidArgument} for operands of a gradient of another shape.
  void check_gradient_operands(const char* name, MatrixShape q_grad, MatrixShape s) const;

  // Returns the search for k places of one group.
  DenseGradW& search_for_places(std::int64_t k);

  // Returns this layer, which has buckets. Throws Error{InvalidArgument} if the plan is dense.
  internal::SparseLayer& buckets_layer(const char* call);

  // Throws Error{InvalidArgument} for operands of another type, and before the first set_weights.
  template <class T>
  void check_call(const char* name) const {
    if (data_type_of<T>() != problem.data_type)
      throw_invalid(fmt::format("{}: operands are {} but the layer is {}", name,
                                to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (empty()) throw_invalid(fmt::format("{}: call set_weights first", name));
  }

 protected:
  // Encode the weights and make them the layer's. A misfit leaves the layer as it was.
  virtual std::optional<partitioner::Misfit> encode(
      std::span<const sparse::CheckedCsr<float>> weights,
      const partitioner::EncodeOptions& options) = 0;

  // FullyConnected::update_weights in two halves: without take_update() the layer is unchanged.
  // take_update() is called with the group of encode_update(), and cannot fail.
  virtual std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                           std::int64_t group) = 0;
  virtual void take_update(std::int64_t group) = 0;
  virtual void put_values(std::span<const float> values, std::int64_t group) = 0;

 private:
  // Drops the change that was prepared, and what follows from the values.
  void change() {
    version = layer::new_number();
    forget_sums();
  }
};

inline FullyConnected::State& FullyConnected::state() const {
  return static_cast<State&>(backend());
}

}  // namespace tessera::runtime
