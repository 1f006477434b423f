#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/matmul.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/dense_grad_w.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/dense_gradient.hpp"
#include "tessera/runtime/internal/dense_layer.hpp"
#include "tessera/runtime/internal/sparse_layer.hpp"

namespace tessera::runtime {

namespace internal {

using AnyLayer = std::variant<SparseLayer, DenseLayer>;

}  // namespace internal

// The state of a layer: fully_connected.cpp has its weights and passes, dense_gradients.cpp what
// looks at the gradient outside the pattern.
struct FullyConnected::State : layer::BackendOf<device::Ledger> {
  State(const Problem& of, internal::AnyLayer&& passes, const device::Machine& on,
        device::ExchangeMode how, Bytes of_buckets, Executor& threads,
        const std::array<std::int64_t, 3>& sums)
      : problem(of),
        layer(std::move(passes)),
        machine(on),
        mode(how),
        buckets(of_buckets),
        executor(&threads),
        partial_sums(sums) {}

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
  const sparse::Csr<float>& weights_of(std::int64_t group) const override { return *given(group); }
  verify::Rounding rounding(Pass pass) const override;

  Problem problem;
  internal::AnyLayer layer;
  device::Machine machine;
  device::ExchangeMode mode;
  Bytes buckets;  // of each tile: what a search leaves free
  Executor* executor;
  std::array<std::int64_t, 3> partial_sums;  // of a result, by Pass

  // The last search for large gradients, and the number of places that it was planned for.
  std::optional<DenseGradW> search = {};
  std::int64_t searched = 0;
  std::optional<internal::DenseGradient> dense_gradient = {};

  // Returns the machine without the memory of the buckets.
  device::Machine beside_buckets() const {
    device::Machine rest = machine;
    rest.tile_memory -= buckets;
    return rest;
  }

  // Throws Error{InvalidArgument} for operands of a gradient of another shape.
  void check_gradient_operands(const char* name, MatrixShape q_grad, MatrixShape s) const;

  // Returns the dense weight gradient, which the first call plans.
  internal::DenseGradient& planned_dense_gradient();

  // Returns the search for k places of one group.
  DenseGradW& search_for_places(std::int64_t k);

  // Calls `run` with the sparse or the dense layer.
  template <class Run>
  decltype(auto) with_layer(Run&& run) {
    return std::visit(std::forward<Run>(run), layer);
  }
  template <class Run>
  decltype(auto) with_layer(Run&& run) const {
    return std::visit(std::forward<Run>(run), layer);
  }

  // Returns the layer with buckets. Throws Error{InvalidArgument} if the plan is dense.
  internal::SparseLayer& buckets_layer(const char* call);

  bool has(Pass pass) const {
    return with_layer([pass](const auto& any) { return any.has(pass); });
  }
  bool empty() const {
    return with_layer([](const auto& any) { return any.empty(); });
  }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const {
    return with_layer(
        [group](const auto& any) -> const sparse::CheckedCsr<float>& { return any.given(group); });
  }

  void set_values(std::span<const float> values, std::int64_t group) override;
  std::int64_t values() const;

  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const PassOptions& options,
               device::Ledger& ledger) {
    return with_layer(
        [&](auto& any) { return any.template product<T>(pass, in, out, options, ledger); });
  }
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger) {
    return with_layer(
        [&](auto& any) { return any.template gradient<T>(q_grad, s, gradients, options, ledger); });
  }

  template <class T>
  void check_type(const char* name) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", name,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
  }

  // Throws Error{InvalidArgument} for operands of another type, and before the first set_weights.
  template <class T>
  void check_call(const char* name) const {
    check_type<T>(name);
    if (empty())
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", name));
  }

  layer::LayerFacts facts() const override;

 private:
  bool takes(const layer::TargetOptions& options) const override {
    return dynamic_cast<const TileOptions*>(&options) != nullptr;
  }
  bool compute(Pass pass, const layer::Operands& operands, const PassOptions& options,
               device::Ledger& ledger) override;
  double seconds(const device::Ledger& ledger) const override {
    return double(ledger.total().value) / machine.clock_hz;
  }
};

inline FullyConnected::State& FullyConnected::state() const {
  return static_cast<State&>(backend());
}

}  // namespace tessera::runtime
