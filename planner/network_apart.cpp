#include "tessera/planner/internal/priced_layer.hpp"

// The cost of a network whose layers are programs of their own, for comparison with one program.
namespace tessera::planner {
namespace {

using State = PricedLayer::State;

// The layout that the optimiser updates.
const Homes& updated(const State& s) {
  return s.updates_transposed ? *s.transposed_form : *s.forward;
}

// With two layouts GradW has a home of its own for the operand that the other layout's pass has.
Cycles again(const State& s) {
  if (!s.transposed_form) return {};
  const Home from = s.updates_transposed ? s.forward->operand_s() : s.transposed_form->operand_s();
  return s.hand_over(from, updated(s).operand_dq());
}

// Each layer brings the sums for its bias to the tiles that own its rows and sends the bias back.
Cycles update(const State& s) {
  Cycles cycles = s.update_weights();
  if (s.layer().bias) cycles += s.machine.launch + s.bias_alone(s.result);
  return cycles;
}

}  // namespace

std::vector<WorkCost> PricedLayer::apart_work() const {
  const State& s = *state_;
  const bool has_step = s.layer().has_activation_step();
  std::vector<WorkCost> work{s.work(NetworkWork::Fwd, s.plan.cost.find(Pass::Fwd)->cycles())};
  if (has_step) work.push_back(s.work(NetworkWork::Activate, s.activation()));
  if (!s.trains()) return work;
  if (s.is_last()) {
    work.push_back(s.work(NetworkWork::Loss, s.loss()));
    work.push_back(s.work(NetworkWork::HandOver,
                          s.hand_over(s.columns, has_step ? s.result : s.operand_dq())));
  }
  if (has_step) {
    work.push_back(s.work(NetworkWork::Derivative, s.derivative(s.result)));
    work.push_back(s.work(NetworkWork::HandOver, s.hand_over(s.result, s.operand_dq())));
  }
  if (s.problem.grad_a) work.push_back(s.work(NetworkWork::GradA, s.grad_a_cost().cycles()));
  work.push_back(s.work(NetworkWork::HandOver, again(s)));
  work.push_back(s.work(NetworkWork::GradW, s.plan.cost.find(Pass::GradW)->cycles()));
  work.push_back(s.work(NetworkWork::Update, update(s)));
  if (s.transposed_form) work.push_back(s.work(NetworkWork::Rehome, s.rehome()));
  if (s.recomputes())
    work.push_back(s.work(NetworkWork::Recompute, s.plan.cost.find(Pass::Fwd)->cycles() +
                                                      (has_step ? s.activation() : Cycles())));
  return work;
}

std::vector<WorkCost> PricedLayer::apart_link_work(const PricedLayer& following) const {
  const State &s = *state_, &next = *following.state_;
  Cycles cycles = s.hand_over(s.result, next.operand_s());
  if (s.trains())
    cycles += s.hand_over(next.input_gradient,
                          s.layer().has_activation_step() ? s.result : s.operand_dq());
  return {s.work(NetworkWork::HandOver, cycles)};
}

std::vector<WorkCost> PricedLayer::spread_work() const {
  const State& s = *state_;
  const auto spread = [&](std::int64_t rows) {
    return spread_home(rows, s.problem.size.z, s.machine.tiles);
  };
  std::vector<WorkCost> work;
  if (s.layer().has_activation_step()) {
    work.push_back(s.work(NetworkWork::Activate, s.activation()));
    if (s.trains()) work.push_back(s.work(NetworkWork::Derivative, s.derivative(s.result)));
  }
  Cycles moved;
  if (!s.is_last()) moved += s.hand_over(s.result, spread(s.problem.size.x));
  if (s.problem.grad_a) moved += s.hand_over(s.input_gradient, spread(s.problem.size.y));
  if (s.is_last() && s.trains()) {
    work.push_back(s.work(NetworkWork::Loss, s.loss()));
    moved += s.hand_over(s.columns, spread(s.problem.size.x));
  }
  work.push_back(s.work(NetworkWork::HandOver, moved));
  if (s.trains()) work.push_back(s.work(NetworkWork::Update, update(s)));
  return work;
}

}  // namespace tessera::planner
