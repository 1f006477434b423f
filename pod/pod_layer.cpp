#include "tessera/pod/pod_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/pod/internal/pass_run.hpp"

namespace tessera::pod {
namespace {

void check_fault(const internal::DeviceSet& devices, Pass pass, const DeviceOptions& options) {
  if (!options.fault) return;
  if (options.ranks != nullptr)
    throw_invalid(fmt::format("{}: a fault needs all devices in one process", to_string(pass)));
  const auto is_faulty = [&](const DevicePlace& place) {
    return place.device == options.fault->device;
  };
  if (std::ranges::none_of(devices.places(), is_faulty))
    throw_invalid(fmt::format("{}: device {} is not in use, so it can have no fault",
                              to_string(pass), options.fault->device));
}

// New weights that every device has tried.
struct PreparedPod : layer::PreparedUpdate::State {
  internal::CutWeights weights;
};

}  // namespace

struct PodLayer::State : layer::BackendOf<PodLedger> {
  State(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order, Executor& executor)
      : devices(plan, mode, order, executor) {}

  const PodPlan& plan() const { return devices.plan(); }

  layer::LayerFacts facts() const override {
    const Problem& of = plan().problem;
    return {.problem = of,
            .passes = {true, of.grad_a, of.grad_w},
            .has_weights = !devices.weights().empty(),
            .values = devices.first_value(std::ssize(devices.weights())),
            .output_rows = of.size.g * of.size.x,
            .input_rows = of.size.g * of.size.y};
  }

  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> next) override {
    internal::CutWeights cut;
    auto misfit = devices.encode(std::move(next), cut);
    if (!misfit) devices.take(std::move(cut));
    return misfit;
  }

  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override {
    auto made = std::make_unique<PreparedPod>();
    made->change = sparse::place_change(weights_of(group), change);
    std::vector<sparse::CheckedCsr<float>> next = devices.weights();
    next[std::size_t(group)] = sparse::with_change(next[std::size_t(group)], change);
    made->misfit = devices.encode(std::move(next), made->weights);
    return made;
  }

  void commit(layer::PreparedUpdate::State& update) override {
    devices.take(std::move(static_cast<PreparedPod&>(update).weights));
  }

  void set_values(std::span<const float> values, std::int64_t group) override {
    std::vector<sparse::CheckedCsr<float>> next = devices.weights();
    std::ranges::copy(values, next[std::size_t(group)].mutable_values().begin());
    const auto misfit = set_weights(std::move(next));
    TESSERA_ASSERT(!misfit);  // the pattern is that of before
  }

  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    return *devices.weights()[std::size_t(group)];
  }

  // Devices round their partial sums to the layer's type before these travel, so the bound is that
  // of sums in that type if devices add to each other's sums.
  verify::Rounding rounding(Pass pass) const override {
    const Dims parts = plan().grid.parts();
    // Devices that add to each other's sums, by pass.
    const std::int64_t adding =
        std::array{parts.y, parts.x, parts.z * plan().serial_parts}[std::size_t(pass)];
    std::int64_t partials = 1;
    for (const DeviceShape& shape : plan().shapes) {
      const auto& dense = shape.plan.dense;
      partials = std::max(partials, dense ? dense->find(pass)->parts.inner
                                          : planner::partial_sums(shape.plan, pass));
    }
    const Problem& problem = plan().problem;
    return {problem.data_type, adding > 1 ? problem.data_type : problem.partials_type,
            partials * adding};
  }

  internal::DeviceSet devices;

 private:
  bool takes(const layer::TargetOptions& options) const override {
    return dynamic_cast<const DeviceOptions*>(&options) != nullptr;
  }
  bool repairs_parts() const override { return true; }
  double seconds(const PodLedger& ledger) const override { return ledger.seconds(); }

  bool compute(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
               PodLedger& ledger) override {
    const DeviceOptions none;
    const auto& target =
        options.target == nullptr ? none : static_cast<const DeviceOptions&>(*options.target);
    check_fault(devices, pass, target);
    return with_type(plan().problem.data_type, [&]<class T>(T) {
      return internal::PassRun<T>(devices, pass, options, target, ledger).run(operands);
    });
  }
};

PodLayer::PodLayer(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order,
                   Executor& executor)
    : LayerOf(std::make_unique<State>(plan, mode, order, executor)) {}

PodLayer::State& PodLayer::state() const { return static_cast<State&>(backend()); }
const PodPlan& PodLayer::plan() const { return state().plan(); }
const std::vector<DevicePlace>& PodLayer::places() const { return state().devices.places(); }
Bytes PodLayer::high_water(std::size_t device) const { return state().devices.high_water(device); }

}  // namespace tessera::pod
