#include "tessera/planner/internal/priced_layer.hpp"

// The cost of a network whose layers are programs of their own, for comparison with one program.
namespace tessera::planner {
namespace {

// The layout that the optimiser updates.
const Homes& updated(const PricedLayer& s) {
  return s.updates_transposed ? *s.transposed_form : *s.forward;
}

// With two layouts GradW has a home of its own for the operand that the other layout's pass has.
Cycles again(const PricedLayer& s) {
  if (!s.transposed_form) return {};
  const Home from = s.updates_transposed ? s.forward->operand_s() : s.transposed_form->operand_s();
  return s.hand_over(from, updated(s).operand_dq());
}

// Each layer brings the sums for its bias to the tiles that own its rows and sends the bias back.
Cycles update(const PricedLayer& s) {
  Cycles cycles = s.update_weights();
  if (s.layer().bias) cycles += s.machine.launch + s.bias_alone(s.result);
  return cycles;
}

}  // namespace

std::vector<WorkCost> PricedLayer::apart_work() const {
  const bool has_step = layer().has_activation_step();
  std::vector<WorkCost> work{work_of(NetworkWork::Fwd, plan.cost.find(Pass::Fwd)->cycles())};
  if (has_step) work.push_back(work_of(NetworkWork::Activate, activation()));
  if (!trains()) return work;
  if (is_last()) {
    work.push_back(work_of(NetworkWork::Loss, loss()));
    work.push_back(
        work_of(NetworkWork::HandOver, hand_over(columns, has_step ? result : operand_dq())));
  }
  if (has_step) {
    work.push_back(work_of(NetworkWork::Derivative, derivative(result)));
    work.push_back(work_of(NetworkWork::HandOver, hand_over(result, operand_dq())));
  }
  if (problem.grad_a) work.push_back(work_of(NetworkWork::GradA, grad_a_cost().cycles()));
  work.push_back(work_of(NetworkWork::HandOver, again(*this)));
  work.push_back(work_of(NetworkWork::GradW, plan.cost.find(Pass::GradW)->cycles()));
  work.push_back(work_of(NetworkWork::Update, update(*this)));
  if (transposed_form) work.push_back(work_of(NetworkWork::Rehome, rehome()));
  if (recomputes())
    work.push_back(work_of(NetworkWork::Recompute, plan.cost.find(Pass::Fwd)->cycles() +
                                                       (has_step ? activation() : Cycles())));
  return work;
}

std::vector<WorkCost> PricedLayer::apart_link_work(const PricedLayer& next) const {
  Cycles cycles = hand_over(result, next.operand_s());
  if (trains())
    cycles += hand_over(next.input_gradient, layer().has_activation_step() ? result : operand_dq());
  return {work_of(NetworkWork::HandOver, cycles)};
}

std::vector<WorkCost> PricedLayer::spread_work() const {
  const auto spread = [&](std::int64_t rows) {
    return spread_home(rows, problem.size.z, machine.tiles);
  };
  std::vector<WorkCost> work;
  if (layer().has_activation_step()) {
    work.push_back(work_of(NetworkWork::Activate, activation()));
    if (trains()) work.push_back(work_of(NetworkWork::Derivative, derivative(result)));
  }
  Cycles moved;
  if (!is_last()) moved += hand_over(result, spread(problem.size.x));
  if (problem.grad_a) moved += hand_over(input_gradient, spread(problem.size.y));
  if (is_last() && trains()) {
    work.push_back(work_of(NetworkWork::Loss, loss()));
    moved += hand_over(columns, spread(problem.size.x));
  }
  work.push_back(work_of(NetworkWork::HandOver, moved));
  if (trains()) work.push_back(work_of(NetworkWork::Update, update(*this)));
  return work;
}

}  // namespace tessera::planner
