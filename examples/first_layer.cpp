#include <cstdio>

#include "tessera/tessera.hpp"

int main() {
  using namespace tessera;
  const auto weights = sparse::random_pattern(2048, 2048, {1, 1}, /*density=*/0.02, /*seed=*/1);
  const Problem problem{.size = {1, 2048, 2048, 64}, .density = 0.02};
  const device::Machine machine = device::machine_preset("gc200");
  const planner::Plan plan = planner::plan_or_throw(problem, machine);

  const auto executor = make_executor();
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  if (const auto misfit = layer.set_weights(weights)) {
    std::puts(misfit->message.c_str());
    return 4;
  }

  const Matrix<Half> s(2048, 64);
  Matrix<Half> q(2048, 64);
  const device::Ledger ledger = layer.forward<Half>(s.view(), q.view());
  std::printf("planned %ld cycles, ran %ld\n", plan.cost.cycles.value, ledger.total().value);
}
