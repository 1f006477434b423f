#include "tessera/planner/network_cost.hpp"

#include <algorithm>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/network_homes.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
namespace {

using internal::Home;
using internal::Homes;

constexpr std::int64_t kFloatBytes = 4;

// The share of a dense tensor on the fullest tile, in elements and rows.
struct Share {
  std::int64_t elements = 0, rows = 0;
};

Share fullest(const Home& home) { return {home.most_elements(), home.most_rows()}; }

// The layouts of a layer's plan. The optimiser updates the layout that runs GradW, and the new
// values move to the other one.
struct Layouts {
  Layouts(const Problem& p, const Plan& plan)
      : problem(p),
        forward_plan(plan),
        forward(p, plan),
        updates_transposed(plan.runs_transposed(Pass::GradW)) {
    if (!plan.backward.empty()) transposed_form.emplace(transposed(p), plan.backward.front());
  }

  // The operand dQ of GradA, or of GradW if there is one layout, and the result of GradA.
  Home operand_dq() const {
    return transposed_form ? transposed_form->operand_s() : forward.operand_dq();
  }
  Home result_ds() const {
    return transposed_form ? transposed_form->result_q() : forward.result_ds();
  }

  // With two layouts: GradW's own home of S or dQ, and the home from which it comes.
  Home again() const { return (updates_transposed ? *transposed_form : forward).operand_dq(); }
  Home again_from() const {
    return updates_transposed ? forward.operand_s() : transposed_form->operand_s();
  }

  const Plan& updated() const { return forward_plan.layout_of(Pass::GradW); }
  RehomeCost rehome(const device::Machine& machine) const {
    const Plan& back = forward_plan.backward.front();
    return updates_transposed ? rehome_cost(back, forward_plan, transposed(problem), machine)
                              : rehome_cost(forward_plan, back, problem, machine);
  }

  const Problem& problem;
  const Plan& forward_plan;
  Homes forward;
  std::optional<Homes> transposed_form;
  bool updates_transposed = false;
};

// An exchange in which the fullest tile sends and receives so many bytes.
Cycles exchange(std::int64_t received, std::int64_t sent, const device::Machine& machine) {
  return machine.sync +
         Cycles(ceil_div(std::max(received, sent), machine.exchange_bytes_per_cycle));
}

Cycles hand_over(const Home& from, const Home& to, const Problem& problem,
                 const device::Machine& machine) {
  return internal::hand_over_cycles(from, to, bytes_of(problem.data_type), machine);
}

// True: a tile computes gradients of another tile's bucket, because operands travel among
// neighbours along z.
bool gradients_move(const Plan& plan) {
  const Dims& parts = plan.partition;
  const int cut = (parts.x > 1) + (parts.y > 1) + (parts.z > 1);
  return !plan.grad_w_exchange_buckets && cut > 1;
}

Cycles update_of_bias(const NetworkSpec& spec, const Problem& problem, const Plan& plan,
                      const device::Machine& machine) {
  const Share share = fullest(Homes(problem, plan).result_q());
  const std::int64_t owned = ceil_div(problem.size.x, std::min(problem.size.x, machine.tiles));
  const std::int64_t sums = plan.partition.product() * share.rows;
  const std::int64_t depth = ceil_div(sums, problem.size.x);
  const Cycles moved = exchange(owned * depth * kFloatBytes, share.rows * kFloatBytes, machine);
  return 2 * moved + machine.launch +
         codelets::reduce_cycles(owned, depth, DataType::Float, DataType::Float, machine.workers) +
         codelets::update_cycles(owned, spec.update.kind, DataType::Float, machine.workers);
}

Cycles update_of_layer(const NetworkSpec& spec, std::int64_t layer, const Problem& problem,
                       const Plan& plan, const device::Machine& machine) {
  const Plan& updated = plan.layout_of(Pass::GradW);
  const std::int64_t values = updated.nonzeros_per_bucket;
  const std::int64_t bytes = values * bytes_of(problem.data_type);
  Cycles cycles = machine.launch + codelets::update_cycles(values, spec.update.kind,
                                                           problem.data_type, machine.workers);
  if (gradients_move(updated)) cycles += exchange(bytes, bytes, machine);
  if (spec.layers[std::size_t(layer)].bias) cycles += update_of_bias(spec, problem, plan, machine);
  return cycles;
}

Cycles derivative_of_layer(const NetworkLayer& layer, const Problem& problem, const Share& share,
                           const device::Machine& machine) {
  Cycles cycles = machine.launch + codelets::derivative_cycles(share.elements, layer.activation,
                                                               problem.data_type, machine.workers);
  if (layer.bias)
    cycles +=
        codelets::sum_rows_cycles(share.elements, share.rows, problem.data_type, machine.workers);
  return cycles;
}

// Returns the cycles of a pass in the layout that `plan` describes. The layout of transpose(R)
// runs the layer's GradA as its own Fwd. The cost of the whole plan is not used, because it
// contains the move of values between the layouts.
Cycles pass_cycles(const Plan& plan, Pass pass) {
  const PassCost* cost = plan.cost.find(pass);
  TESSERA_ASSERT(cost != nullptr);
  return cost->cycles();
}

}  // namespace

std::vector<WorkCost> layer_work(const NetworkSpec& spec, std::int64_t l, const Plan& plan,
                                 const device::Machine& machine) {
  const Problem problem = problem_of(spec, l);
  const NetworkLayer& layer = spec.layers[std::size_t(l)];
  const Layouts layouts(problem, plan);
  const Home result_home = layouts.forward.result_q();
  const Share result = fullest(result_home);
  std::vector<WorkCost> work{{NetworkWork::Fwd, l, pass_cycles(plan, Pass::Fwd)}};
  if (layer.has_activation_step())
    work.push_back(
        {NetworkWork::Activate, l,
         machine.launch + codelets::activate_cycles(result.elements, result.rows, layer.activation,
                                                    problem.data_type, machine.workers)});
  if (!spec.loss) return work;
  if (l + 1 == std::ssize(spec.layers)) {
    const Home columns = internal::column_home(problem.size.x, problem.size.z, machine.tiles);
    const codelets::LossPart part{problem.size.x, columns.pieces.front().width, problem.size.z};
    work.push_back(
        {NetworkWork::Loss, l,
         hand_over(result_home, columns, problem, machine) + machine.launch +
             codelets::loss_cycles(part, *spec.loss, problem.data_type, machine.workers)});
    const Home next = layer.has_activation_step() ? result_home : layouts.operand_dq();
    work.push_back({NetworkWork::HandOver, l, hand_over(columns, next, problem, machine)});
  }
  if (layer.has_activation_step()) {
    work.push_back(
        {NetworkWork::Derivative, l, derivative_of_layer(layer, problem, result, machine)});
    work.push_back(
        {NetworkWork::HandOver, l, hand_over(result_home, layouts.operand_dq(), problem, machine)});
  }
  if (problem.grad_a)
    work.push_back({NetworkWork::GradA, l,
                    layouts.transposed_form ? pass_cycles(plan.backward.front(), Pass::Fwd)
                                            : pass_cycles(plan, Pass::GradA)});
  if (layouts.transposed_form)
    work.push_back({NetworkWork::HandOver, l,
                    hand_over(layouts.again_from(), layouts.again(), problem, machine)});
  work.push_back({NetworkWork::GradW, l, pass_cycles(plan, Pass::GradW)});
  work.push_back({NetworkWork::Update, l, update_of_layer(spec, l, problem, plan, machine)});
  if (!layouts.transposed_form) return work;
  const RehomeCost rehome = layouts.rehome(machine);
  work.push_back({NetworkWork::Rehome, l, rehome.cycles + rehome.overhead});
  return work;
}

Cycles link_cycles(const NetworkSpec& spec, std::int64_t l, const Plan& plan, const Plan& next,
                   const device::Machine& machine) {
  const Problem problem = problem_of(spec, l), problem_of_next = problem_of(spec, l + 1);
  const Layouts layouts(problem, plan), next_layouts(problem_of_next, next);
  const Home result = layouts.forward.result_q();
  const Cycles cycles = hand_over(result, next_layouts.forward.operand_s(), problem, machine);
  if (!spec.loss) return cycles;
  const bool has_step = spec.layers[std::size_t(l)].has_activation_step();
  return cycles + hand_over(next_layouts.result_ds(), has_step ? result : layouts.operand_dq(),
                            problem, machine);
}

Cycles spread_hand_over_cycles(const NetworkSpec& spec, std::int64_t l, const Plan& plan,
                               const device::Machine& machine) {
  const Problem problem = problem_of(spec, l);
  const Layouts layouts(problem, plan);
  const auto spread = [&](std::int64_t rows) {
    return internal::spread_home(rows, problem.size.z, machine.tiles);
  };
  const bool is_last = l + 1 == std::ssize(spec.layers);
  Cycles cycles;
  if (!is_last)
    cycles += hand_over(layouts.forward.result_q(), spread(problem.size.x), problem, machine);
  if (problem.grad_a)
    cycles += hand_over(layouts.result_ds(), spread(problem.size.y), problem, machine);
  if (is_last && spec.loss)
    cycles += hand_over(internal::column_home(problem.size.x, problem.size.z, machine.tiles),
                        spread(problem.size.x), problem, machine);
  return cycles;
}

Bytes resident_bytes(const NetworkSpec& spec, std::int64_t l, const Plan& plan) {
  const Problem problem = problem_of(spec, l);
  const Layouts layouts(problem, plan);
  const Share result = fullest(layouts.forward.result_q());
  const std::int64_t states = spec.loss ? codelets::states_of(spec.update.kind) : 0;
  std::int64_t bytes = plan.cost.resident.value + result.elements * bytes_of(problem.data_type);
  bytes += states * layouts.updated().nonzeros_per_bucket * kFloatBytes;
  if (layouts.transposed_form)
    bytes += (layouts.operand_dq().most_elements() + layouts.again().most_elements()) *
             bytes_of(problem.data_type);
  if (spec.layers[std::size_t(l)].bias) bytes += result.rows * kFloatBytes;
  return Bytes(bytes);
}

}  // namespace tessera::planner
