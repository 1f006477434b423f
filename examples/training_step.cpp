#include <cstdio>
#include <stop_token>

#include "tessera/tessera.hpp"

// A sparse layer in training. The layer is planned and built once; then it runs passes, takes new
// values and new patterns, and works on strided views of the caller's memory.
int main() {
  using namespace tessera;
  const Problem problem{.size = {1, 512, 768, 64}, .density = 0.1, .grad_a = true, .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");
  const auto executor = make_executor();
  // So small a layer would cost less as a dense product, which the planner takes if it may.
  const planner::Plan plan = planner::plan_or_throw(problem, machine, planner::sparse_options());
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const auto weights = sparse::random_pattern(512, 768, {1, 1}, 0.1, /*seed=*/1);
  if (const auto misfit = layer.set_weights(weights)) {
    std::puts(misfit->message.c_str());
    return 4;
  }

  // One batch: 64 columns of a wider matrix.
  const Matrix<Half> all_s(768, 1024), dq(512, 64);
  Matrix<Half> q(512, 64), ds(768, 64);
  std::vector<float> dr(weights.values.size());
  const auto s = all_s.view().sub({0, 768}, {128, 192});
  device::Ledger ledger = layer.forward<Half>(s, q.view());
  std::printf("Fwd   %ld cycles\n", ledger.total().value);
  std::printf("GradA %ld cycles\n", layer.grad_a<Half>(dq.view(), ds.view()).total().value);
  std::printf("GradW %ld cycles\n", layer.grad_w<Half>(dq.view(), s, dr).total().value);

  // An optimiser changes the values. A pattern update changes the places: here the first block of
  // row 0 moves to the first free column.
  std::vector<float> values = layer.weights().values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.01f * dr[i];
  layer.set_values(values);
  std::int32_t free_column = 0;
  while (weights.col[std::size_t(free_column)] == free_column) ++free_column;
  const sparse::PatternChange change{{{0, weights.col[0]}}, {{0, free_column}}};
  if (const auto misfit = layer.update_weights(change)) {
    std::puts(misfit->message.c_str());
    return 4;
  }

  // A batch of another size runs in parts of the planned size.
  const Matrix<Half> odd_s(768, 100);
  Matrix<Half> odd_q(512, 100);
  ledger = runtime::forward_batch<Half>(layer, odd_s.view(), odd_q.view());
  std::printf("Fwd of 100 columns: %ld cycles\n", ledger.total().value);

  // A pass reports its progress and can be stopped between two steps.
  std::stop_source stop;
  const auto stop_after_one_step = [&](const runtime::Progress& at) {
    if (at.begun == 1) stop.request_stop();
  };
  const layer::PassOptions options{.stop = stop.get_token(), .progress = stop_after_one_step};
  const bool finished = layer.forward<Half>(s, q.view(), options, ledger);
  std::printf("stopped after step %zu: %s\n", ledger.steps.size(), finished ? "no" : "yes");
}
