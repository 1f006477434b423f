#include "tessera/examples/graph_challenge_resident.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::examples {
namespace {

planner::NetworkSpec spec_of(const Arguments& a, std::int64_t images) {
  const planner::NetworkLayer layer{
      .outputs = kNeurons,
      .inputs = kNeurons,
      .density = kWeightsPerNeuron / kNeurons,
      .activation = {.kind = codelets::Activation::Relu, .cap = kCap}};
  return {.layers = std::vector(std::size_t(kLayers), layer), .batch = images, .data_type = a.type};
}

// One plan for all images at once, or for the fewest equal parts that fit the machine.
std::pair<planner::NetworkSpec, planner::NetworkPlan> plan_resident(const Arguments& a,
                                                                    const device::Machine& machine,
                                                                    std::int64_t images) {
  for (std::int64_t parts = 1;; ++parts) {
    if (images % parts != 0) continue;
    planner::NetworkSpec spec = spec_of(a, images / parts);
    try {
      planner::NetworkPlan plan = planner::plan_network(spec, machine, planner::sparse_options());
      return {std::move(spec), std::move(plan)};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::NoSolution || parts == images) throw;
    }
  }
}

void give_parameters(const Arguments& a, runtime::Network& network) {
  const std::vector<float> bias(std::size_t(kNeurons), kBias);
  for (std::int64_t l = 0; l < kLayers; ++l) {
    if (const auto misfit = network.set_weights(l, layer_weights(a, l + 1)))
      throw Error(ErrorCode::NoSolution, fmt::format("layer {}: {}", l + 1, misfit->message));
    network.set_bias(l, bias);
  }
}

// Returns the cycles of one kind of work in all layers.
Cycles cycles_of(const runtime::Network& network, const runtime::NetworkCost& cost,
                 runtime::NetworkWork work) {
  Cycles cycles;
  for (std::size_t part = 0; part < network.parts().size(); ++part)
    if (network.parts()[part].work == work) cycles += cost.of(int(part));
  return cycles;
}

}  // namespace

bool run_resident(const Arguments& a, Cycles swapped_in) {
  Matrix<float> images = read_images<float>(a);
  const device::Machine machine = device::load_machine(a.machine);
  const auto [spec, plan] = plan_resident(a, machine, images.cols());
  const auto executor = make_executor(a.threads);
  runtime::Network network(spec, plan.plans, machine, device::ExchangeMode::Share, *executor);
  give_parameters(a, network);

  Matrix<float> results(kNeurons, images.cols());
  Cycles cycles, activation;
  Bytes moved;
  for (std::int64_t z = 0; z < images.cols(); z += spec.batch) {
    const auto cost =
        network.run({.inputs = images.view().sub({0, kNeurons}, {z, z + spec.batch})});
    for (std::int64_t row = 0; row < kNeurons; ++row)
      for (std::int64_t col = 0; col < spec.batch; ++col)
        results(row, z + col) = network.outputs()(row, col);
    cycles += cost.ledger.total();
    activation += cycles_of(network, cost, runtime::NetworkWork::Activate);
    moved += cost.ledger.moved();
  }
  const double seconds = double(cycles.value) / machine.clock_hz;
  fmt::print("resident: {} images at once, {} cycles ({} planned for a part), {:.1f} us\n",
             spec.batch, cycles.value, plan.cycles.value, seconds * 1e6);
  fmt::print("of these bias, ReLU and cap take {}; all exchanges bring {} bytes to tiles\n",
             activation.value, moved.value);
  fmt::print("memory {} of {} bytes on the fullest tile\n", network.high_water().value,
             machine.tile_memory.value);
  fmt::print("forward passes of layers that are swapped in, for free: {} cycles, {:.3f} of it\n",
             swapped_in.value, double(swapped_in.value) / double(cycles.value));
  return is_published(a, alive_in(results));
}

}  // namespace tessera::examples
