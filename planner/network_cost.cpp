#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/internal/priced_layer.hpp"

namespace tessera::planner {
namespace {

constexpr std::int64_t kFloatBytes = 4;

Cycles exchange(std::int64_t bytes, const device::Machine& machine) {
  return Cycles(ceil_div(bytes, machine.exchange_bytes_per_cycle));
}

// True: tiles compute GradW of other cells than their own, because operands travel among neighbours
// along z. Words and gradients then move.
bool cells_move(const Plan& plan) {
  const Dims& parts = plan.partition;
  return !plan.grad_w_exchange_buckets && parts.x > 1 && parts.y * parts.z > 1;
}

// Returns the cycles of a pass in one layout, with its launches and barriers, but without what its
// first exchange does.
Cycles after_exchange(const PassCost& cost, const device::Machine& machine) {
  const CostTerm* const first = cost.find(Term::ExchangeOperands);
  const bool has_exchange = first != nullptr && first->cycles > Cycles();
  return has_exchange ? cost.cycles() - first->cycles - machine.sync : cost.cycles();
}

// Returns the cycles in which a tile receives the other buckets of its cell.
Cycles cell_cycles(const Plan& plan, Words words, const Problem& problem,
                   const device::Machine& machine) {
  const Dims& parts = plan.partition;
  const std::int64_t bucket =
      plan.nonzeros_per_bucket * bytes_of(problem.data_type) + words.value * machine.word_bits / 8;
  return internal::receive_cycles(machine,
                                  {parts.z * bucket, bucket, parts.z, parts.x == 1 ? parts.z : 1});
}

// Returns the cycles in which a tile receives the words of the cell that it works on in GradW.
Cycles words_cycles(const Plan& plan, const device::Machine& machine) {
  return cells_move(plan) ? exchange(plan.fwd_meta_words.value * machine.word_bits / 8, machine)
                          : Cycles();
}

// Returns the bytes of the words that end propagation, on one tile for each pass.
std::int64_t travel_words(const Plan& plan, std::int64_t passes) {
  constexpr std::int64_t kWordBytes = 4, kOthers = 3;
  return passes * kWordBytes * (plan.partition.x + kOthers);
}

// Returns the bytes of the shares of both operands that a plan counts as resident.
std::int64_t operand_shares(const Problem& problem, const Plan& plan) {
  const Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  return internal::operand_shares(problem, plan.partition,
                                  ceil_div(grains, plan.partition) * plan.grain);
}

}  // namespace

PricedLayer::PricedLayer(const NetworkSpec& network, std::int64_t number, const Plan& of_layer,
                         const device::Machine& on)
    : spec(network),
      l(number),
      plan(of_layer),
      machine(on),
      problem(problem_of(network, number)),
      updates_transposed(of_layer.runs_transposed(Pass::GradW)) {
  if (is_dense())
    set_dense_homes();
  else
    set_sparse_homes();
  if (trains() && is_last()) columns = column_home(problem.size.x, problem.size.z, machine.tiles);
}

void PricedLayer::set_dense_homes() {
  const DenseHomes fwd(*plan.dense->find(Pass::Fwd));
  result = fwd.result();
  fwd_r = fwd.slices(Side::Left);
  fwd_s = fwd.slices(Side::Right);
  if (!trains()) {
    weights = fwd.shares(Side::Left);
    return;
  }
  const DenseHomes grad_w(*plan.dense->find(Pass::GradW));
  weights = grad_w.result();
  grad_w_dq = grad_w.slices(Side::Left);
  grad_w_s = grad_w.slices(Side::Right);
  if (!problem.grad_a) return;
  const DenseHomes grad_a(*plan.dense->find(Pass::GradA));
  input_gradient = grad_a.result();
  grad_a_r = grad_a.slices(Side::Left);
  grad_a_dq = grad_a.slices(Side::Right);
}

// GradW reads the slices of S that Fwd has fetched only if S is not computed again in between.
void PricedLayer::set_sparse_homes() {
  forward.emplace(problem, plan);
  if (!plan.backward.empty()) transposed_form.emplace(transposed(problem), plan.backward.front());
  result = forward->result_q();
  fwd_s = forward->slices_s();
  if (!trains()) return;
  input_gradient = transposed_form ? transposed_form->result_q() : forward->result_ds();
  grad_a_dq = transposed_form ? transposed_form->slices_s() : forward->slices_dq();
  const auto order = updated().grad_w_exchange_buckets ? TileOrder::Yzx : TileOrder::Xyz;
  grad_w_s = updates_transposed ? transposed_form->slices_dq(order) : forward->slices_s(order);
  grad_w_dq = updates_transposed ? transposed_form->slices_s(order) : forward->slices_dq(order);
  if (cells_move(updated())) return;
  const Dims& parts = updated().partition;
  const bool is_recomputed = l > 0 && spec.layers[std::size_t(l) - 1].recompute;
  keeps_s = !updates_transposed && parts.x == 1 && !is_recomputed;
  keeps_dq =
      problem.grad_a && (transposed_form ? updates_transposed && parts.x == 1 : parts.y == 1);
}

std::int64_t PricedLayer::most_updated_values() const {
  return is_dense() ? weights.most_elements() : updated().nonzeros_per_bucket;
}

bool PricedLayer::gradients_move() const { return !is_dense() && cells_move(updated()); }

Cycles PricedLayer::weights_fetch(Pass pass) const {
  if (is_dense()) {
    if (pass == Pass::GradW) return {};
    return fetch(weights, pass == Pass::Fwd ? fwd_r : grad_a_r);
  }
  if (pass == Pass::GradW) return words_cycles(updated(), machine);
  if (pass == Pass::Fwd) return cell_cycles(plan, plan.fwd_meta_words, problem, machine);
  const Plan& layout = transposed_form ? plan.backward.front() : plan;
  const bool own_words = !transposed_form && !plan.shared_buckets();
  return cell_cycles(layout, own_words ? layout.grad_a_meta_words : layout.fwd_meta_words, problem,
                     machine);
}

std::int64_t PricedLayer::recomputed_elements() const {
  return recomputes() ? result.most_elements() * (1 + layer().activation.keeps_sums()) : 0;
}

WorkCost PricedLayer::grad_w_fetch(const Home& from, bool is_s) const {
  const bool is_here = is_s ? keeps_s : keeps_dq;
  return work_of(NetworkWork::GradW, is_here ? Cycles() : fetch(from, is_s ? grad_w_s : grad_w_dq));
}

const PassCost& PricedLayer::grad_a_cost() const {
  const PassCost* cost =
      transposed_form ? plan.backward.front().cost.find(Pass::Fwd) : plan.cost.find(Pass::GradA);
  TESSERA_ASSERT(cost != nullptr);
  return *cost;
}

Cycles PricedLayer::rehome() const {
  const Plan& back = plan.backward.front();
  const RehomeCost cost = updates_transposed ? rehome_cost(back, plan, transposed(problem), machine)
                                             : rehome_cost(plan, back, problem, machine);
  return cost.cycles + cost.overhead;
}

Cycles PricedLayer::activation() const {
  const FullestShare share = fullest(result);
  return machine.launch + codelets::activate_cycles(share.elements, share.rows, layer().activation,
                                                    problem.data_type, machine.workers);
}

Cycles PricedLayer::loss() const {
  const codelets::LossPart part{problem.size.x, columns.pieces.front().width, problem.size.z};
  return hand_over(result, columns) + machine.launch +
         codelets::loss_cycles(part, *spec.loss, problem.data_type, machine.workers);
}

Cycles PricedLayer::derivative(const Home& at) const {
  const FullestShare share = fullest(at);
  Cycles cycles = machine.launch + codelets::derivative_cycles(share.elements, layer().activation,
                                                               problem.data_type, machine.workers);
  if (layer().bias)
    cycles +=
        codelets::sum_rows_cycles(share.elements, share.rows, problem.data_type, machine.workers);
  return cycles;
}

Cycles PricedLayer::update_weights() const {
  const std::int64_t values = most_updated_values();
  Cycles cycles = machine.launch + codelets::update_cycles(values, spec.optimiser,
                                                           problem.data_type, machine.workers);
  if (gradients_move())
    cycles += machine.sync + exchange(values * bytes_of(problem.data_type), machine);
  return cycles;
}

Cycles PricedLayer::bias_alone(const Home& gradient) const {
  const std::int64_t owned = ceil_div(problem.size.x, std::min(problem.size.x, machine.tiles));
  const std::int64_t depth = ceil_div(gradient.sum_of_rows(), problem.size.x);
  const std::int64_t arrive = std::max(owned * depth, gradient.most_rows());
  Cycles moved;
  if (!gradient.is_by_owned_rows(machine.tiles))
    moved += machine.sync + exchange(arrive * kFloatBytes, machine);
  if (!result.is_by_owned_rows(machine.tiles))
    moved += machine.sync + exchange(result.most_rows() * kFloatBytes, machine);
  return moved + codelets::sum_rows_cycles(owned * depth, owned, DataType::Float, machine.workers) +
         codelets::update_cycles(owned, codelets::without_decay(spec.optimiser), DataType::Float,
                                 machine.workers);
}

// The barriers of both exchanges are charged once for all layers (own_work), unless a bias is the
// only one.
Cycles PricedLayer::bias(const Home& gradient) const {
  if (!layer().bias) return {};
  Cycles cycles = bias_alone(gradient);
  if (std::ranges::count_if(spec.layers, &NetworkLayer::bias) == 1) return cycles;
  for (const Home* const home : {&gradient, &result})
    if (!home->is_by_owned_rows(machine.tiles)) cycles = cycles - machine.sync;
  return cycles;
}

std::vector<WorkCost> PricedLayer::own_work() const {
  // Each pass has a first exchange, and clears the padding of what it fetches in a step before it.
  const auto pass = [&](const PassCost& cost, Cycles fetched, Cycles cleared, bool waits = true) {
    return after_exchange(cost, machine) + (waits ? machine.sync : Cycles()) + fetched +
           (cleared > Cycles() ? cleared + machine.launch : Cycles());
  };
  const auto cleared = [&](const Home& home, bool all = true) {
    return internal::clear_cycles(home, all, element(), machine);
  };
  Cycles fetched = weights_fetch(Pass::Fwd);
  // S is where the layer wants it; else the link to the layer before prices its fetches.
  const bool has_s = l == 0 || has_own_homes();
  if (has_s) fetched += fetch(home_of_s(), fwd_s);
  const Cycles fwd = pass(*plan.cost.find(Pass::Fwd), fetched, cleared(fwd_s, keeps_s));
  const Cycles activated = layer().has_activation_step() ? activation() : Cycles();
  std::vector<WorkCost> work{work_of(NetworkWork::Fwd, fwd)};
  if (layer().has_activation_step()) work.push_back(work_of(NetworkWork::Activate, activated));
  if (!trains()) return work;
  if (recomputes()) work.push_back(work_of(NetworkWork::Recompute, fwd + activated));
  Cycles of_grad_a, of_grad_w = weights_fetch(Pass::GradW);
  const auto add_dq_fetches = [&](const Home& from) {
    if (problem.grad_a) of_grad_a += fetch(from, grad_a_dq);
    of_grad_w += grad_w_fetch(from, /*is_s=*/false).cycles;
  };
  if (is_last()) {
    work.push_back(work_of(NetworkWork::Loss, loss()));
    const bool has_step = layer().has_activation_step();
    if (has_step) {
      work.push_back(work_of(NetworkWork::HandOver, hand_over(columns, result)));
      work.push_back(work_of(NetworkWork::Derivative, derivative(result)));
      work.push_back({NetworkWork::UpdateBiases, 0, bias(result)});
    }
    const Home& gradient = has_step ? result : columns;
    if (has_own_homes())
      work.push_back(work_of(NetworkWork::HandOver, hand_over(gradient, home_of_dq())));
    else
      add_dq_fetches(gradient);
  }
  if (has_own_homes()) add_dq_fetches(home_of_dq());
  if (problem.grad_a) {
    of_grad_a += weights_fetch(Pass::GradA);
    work.push_back(work_of(NetworkWork::GradA, pass(grad_a_cost(), of_grad_a, cleared(grad_a_dq))));
  }
  if (has_s) of_grad_w += grad_w_fetch(home_of_s(), /*is_s=*/true).cycles;
  work.push_back(work_of(NetworkWork::GradW,
                         pass(*plan.cost.find(Pass::GradW), of_grad_w,
                              cleared(grad_w_s) + cleared(grad_w_dq), !keeps_s || !keeps_dq)));
  work.push_back(work_of(NetworkWork::Update, update_weights()));
  if (transposed_form) work.push_back(work_of(NetworkWork::Rehome, rehome()));
  // A bias that is the only one may find nothing to move.
  const auto biases = std::ranges::count_if(spec.layers, &NetworkLayer::bias);
  if (l == 0 && biases > 0)
    work.push_back({NetworkWork::UpdateBiases, 0,
                    (biases > 1 ? 2 * machine.sync : Cycles()) + machine.launch});
  return work;
}

std::vector<WorkCost> PricedLayer::link_work(const PricedLayer& next) const {
  std::vector<WorkCost> work;
  if (next.has_own_homes()) {
    work.push_back(next.work_of(NetworkWork::HandOver, hand_over(result, next.home_of_s())));
  } else {
    const Cycles fetched = fetch(result, next.fwd_s);
    work.push_back(next.work_of(NetworkWork::Fwd, fetched));
    if (next.recomputes()) work.push_back(next.work_of(NetworkWork::Recompute, fetched));
    if (trains()) work.push_back(next.grad_w_fetch(result, /*is_s=*/true));
  }
  if (!trains()) return work;
  const Home& gradient = next.input_gradient;
  if (layer().has_activation_step()) {
    if (layer().activation.kind != codelets::Activation::None) {
      const Cycles cleared = internal::clear_cycles(gradient, /*columns=*/true, element(), machine);
      work.push_back(next.work_of(NetworkWork::GradA, fetch(result, gradient) + cleared));
    }
    work.push_back(work_of(NetworkWork::Derivative, derivative(gradient)));
    work.push_back({NetworkWork::UpdateBiases, 0, bias(gradient)});
  }
  if (has_own_homes()) {
    work.push_back(work_of(NetworkWork::HandOver, hand_over(gradient, home_of_dq())));
    return work;
  }
  if (problem.grad_a) work.push_back(work_of(NetworkWork::GradA, fetch(gradient, grad_a_dq)));
  work.push_back(grad_w_fetch(gradient, /*is_s=*/false));
  return work;
}

// The bytes of R that stay on the fullest tile.
std::int64_t PricedLayer::weight_bytes() const {
  if (is_dense()) return weights.most_elements() * element();
  std::int64_t shares = operand_shares(problem, plan);
  if (transposed_form)
    shares = std::min(shares, operand_shares(transposed(problem), plan.backward.front()));
  std::int64_t bytes = plan.cost.resident.value - shares;
  bytes += travel_words(plan, 1 + problem.grad_a + problem.grad_w + recomputes());
  if (transposed_form) bytes += travel_words(plan.backward.front(), 2);
  return bytes;
}

Bytes PricedLayer::resident() const {
  const FullestShare share = fullest(result);
  const bool keeps_sums = layer().activation.keeps_sums();
  std::int64_t elements = trains() && !recomputes() ? share.elements * (1 + keeps_sums) : 0;
  if (l == 0 || has_own_homes()) elements += home_of_s().most_elements();
  if (trains() && has_own_homes()) elements += home_of_dq().most_elements();
  std::int64_t bytes = weight_bytes();
  if (keeps_s && !recomputes()) elements += fwd_s.most_elements();
  if (keeps_dq) elements += grad_a_dq.most_elements();
  if (layer().bias) bytes += share.rows * kFloatBytes;
  if (!trains()) return Bytes(bytes + elements * element());
  // The gradients of the inputs stay until GradW of the layer before has run, the sums over rows
  // until the biases are updated.
  if (problem.grad_a) elements += 2 * input_gradient.most_elements();
  if (layer().bias) bytes += share.rows * kFloatBytes;
  bytes += codelets::states_of(spec.optimiser) * most_updated_values() * kFloatBytes;
  return Bytes(bytes + elements * element());
}

// Slices that a plan finds at home are fetched in a network. A result that is not kept stays until
// the next layer has fetched it.
Bytes PricedLayer::temp() const {
  std::int64_t elements = trains() ? recomputed_elements() : 2 * result.most_elements();
  const auto add = [&](const Dims& parts, const Home& slices, const Home& other) {
    if (parts.x == 1) elements += slices.most_elements();
    if (parts.y == 1) elements += other.most_elements();
  };
  if (!is_dense()) add(plan.partition, fwd_s, grad_w_dq);
  if (transposed_form) add(plan.backward.front().partition, grad_a_dq, grad_w_s);
  return plan.cost.temp + Bytes(elements * element());
}

Bytes PricedLayer::temp_of_next() const {
  std::int64_t elements = recomputed_elements();
  if (recomputes() && keeps_s) elements += fwd_s.most_elements();
  return Bytes(elements * element());
}

}  // namespace tessera::planner
