// A layer whose pattern stays: planned for the places of its blocks, run on a modelled machine, and
// given new values.
#include "tessera/runtime/static_layer.hpp"

#include <cstdio>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/random.hpp"

int main() {
  using namespace tessera;
  constexpr std::int64_t kOutputs = 512, kInputs = 512, kBatch = 64;
  const BlockShape block{16, 16};
  const sparse::CheckedCsr<float> weights =
      sparse::checked(sparse::random_pattern(kOutputs, kInputs, block, 0.1, /*seed=*/1));
  const Problem problem{
      .size = {1, kOutputs, kInputs, kBatch}, .block = block, .grad_a = true, .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");

  const planner::BlockPattern pattern{block, weights->block_rows(), weights->block_cols(),
                                      weights->row_begin, weights->col};
  const planner::StaticPlanResult planned = planner::plan_static(problem, pattern, machine);
  if (!planned.plan) {
    std::printf("%s\n", planned.reason.c_str());
    return 1;
  }

  const auto executor = make_executor();
  runtime::StaticLayer layer(problem, weights, *planned.plan, machine, device::ExchangeMode::Share,
                             *executor);
  const auto s = random_matrix<Half>(kInputs, kBatch, 2);
  const auto q_grad = random_matrix<Half>(kOutputs, kBatch, 3);
  Matrix<Half> q(kOutputs, kBatch), s_grad(kInputs, kBatch);
  std::vector<float> gradients(std::size_t(layer.values()));
  const device::Ledger forward = layer.forward<Half>(s.view(), q.view());
  const device::Ledger backward = layer.grad_a<Half>(q_grad.view(), s_grad.view());
  const device::Ledger update = layer.grad_w<Half>(q_grad.view(), s.view(), std::span(gradients));
  std::printf("planned Fwd %lld cycles, run %lld; GradA %lld, GradW %lld\n",
              static_cast<long long>(planned.plan->cost.cycles.value),
              static_cast<long long>(forward.total().value),
              static_cast<long long>(backward.total().value),
              static_cast<long long>(update.total().value));

  std::vector<float> values = weights->values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.01f * gradients[i];
  layer.set_values(values);
  return 0;
}
