#include "tessera/examples/training_loop.hpp"

#include <cstdio>

#include "tessera/tessera.hpp"

// One training loop on two layers: this computer, and a modelled machine of many tiles.
int main() {
  using namespace tessera;
  const Problem problem{
      .size = {1, 256, 384, 64}, .density = 0.1, .data_type = DataType::Float, .grad_w = true};
  const auto weights = sparse::random_pattern(256, 384, {1, 1}, 0.08, /*seed=*/1);
  const auto executor = make_executor();
  host::HostLayer host(problem, host::read_host_cpu(), *executor);
  const auto on_host = examples::train_layer(host, weights, *executor);
  const device::Machine machine = device::machine_preset("gc200");
  // A plan with buckets, as this computer has, and not a dense one.
  const planner::Plan plan = planner::plan_or_throw(problem, machine, planner::sparse_options());
  runtime::FullyConnected tiles(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const auto on_tiles = examples::train_layer(tiles, weights, *executor);
  for (std::size_t step = 0; step < on_host.size(); step += 4)
    std::printf("step %2zu: loss %.4f on this computer, %.4f on %s\n", step, on_host[step],
                on_tiles[step], machine.name.c_str());
}
