#include "tessera/planner/network_cost.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::planner {
namespace {

constexpr std::int64_t kFloatBytes = 4;

// The share of a dense tensor on the fullest tile, in elements and rows, and whether a share has
// padding.
struct Share {
  std::int64_t elements = 0, rows = 0;
  bool is_padded = false;
};

// The shares of a layer's dense tensors under its plan.
class Shares {
 public:
  Shares(const Problem& problem, const Plan& plan) : problem_(problem), parts_(plan.partition) {
    Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
    grains.z = round_up(grains.z, parts_.z);
    padded_ = grains * plan.grain;
    rows_of_x_ = share_of(padded_.x, plan.block.rows, parts_.x, 0).size();
    rows_of_y_ = share_of(padded_.y, plan.block.cols, parts_.y, 0).size();
    width_ = padded_.z / parts_.z;
  }
  Share operand_s() const { return operand(rows_of_y_, parts_.x, padded_.y > problem_.size.y); }
  Share operand_dq() const { return operand(rows_of_x_, parts_.y, padded_.x > problem_.size.x); }
  Share result_q() const { return result(rows_of_x_, parts_.y, padded_.x > problem_.size.x); }
  // Returns the elements that the busiest tile sends or receives when Q goes from the shares of the
  // result to those of the operand: tiles keep the elements that are in both of their own shares.
  std::int64_t regrouped_q() const {
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < parts_.y; ++i) {
      const Range from = share_of(rows_of_x_ * width_, 1, parts_.y, i);
      const Range rows = share_of(rows_of_x_, 1, parts_.y, i);
      const Range to{rows.begin * width_, rows.end * width_};
      const std::int64_t kept =
          std::max<std::int64_t>(0, std::min(from.end, to.end) - std::max(from.begin, to.begin));
      most = std::max({most, from.size() - kept, to.size() - kept});
    }
    return most;
  }
  Share result_ds() const { return result(rows_of_y_, parts_.x, padded_.y > problem_.size.y); }

  // Returns true if the tiles that hold a part of Q are those that hold it as an operand of `next`,
  // so that neither Q nor its gradient move: neither is cut along the batch, and a part of Q has
  // one tile in both plans.
  bool coincide_with(const Shares& next) const {
    return parts_.z == 1 && next.parts_.z == 1 && parts_.y == 1 && next.parts_.x == 1 &&
           rows_of_x_ == next.rows_of_y_ && width_ == next.width_;
  }

 private:
  Share operand(std::int64_t rows, std::int64_t sharers, bool is_padded) const {
    const std::int64_t own = ceil_div(rows, sharers);
    return {own * width_, own, is_padded || padded_.z > problem_.size.z};
  }
  Share result(std::int64_t rows, std::int64_t sharers, bool is_padded) const {
    const std::int64_t own = ceil_div(rows * width_, sharers);
    // A run that begins inside a row has elements of one row more.
    const std::int64_t touched = ceil_div(own, width_) + (own % width_ != 0 ? 1 : 0);
    return {own, std::min(rows, touched), is_padded || padded_.z > problem_.size.z};
  }

  const Problem& problem_;
  Dims parts_, padded_;
  std::int64_t rows_of_x_ = 0, rows_of_y_ = 0, width_ = 1;
};

// An exchange in which the fullest tile sends and receives so many bytes.
Cycles exchange(std::int64_t received, std::int64_t sent, const device::Machine& machine) {
  return machine.sync +
         Cycles(ceil_div(std::max(received, sent), machine.exchange_bytes_per_cycle));
}

Cycles hand_over(const Share& from, const Share& to, const Problem& problem,
                 const device::Machine& machine) {
  const std::int64_t bytes = bytes_of(problem.data_type);
  Cycles cycles = exchange(to.elements * bytes, from.elements * bytes, machine);
  if (to.is_padded)
    cycles += machine.launch + codelets::zero_cycles(to.elements * bytes, machine.workers);
  return cycles;
}

// The hand-over of a gradient from the result of its layer to the operand of GradA and GradW, which
// are on the same tiles.
Cycles regroup(const Shares& shares, const Problem& problem, const device::Machine& machine) {
  const std::int64_t bytes = bytes_of(problem.data_type), moved = shares.regrouped_q() * bytes;
  const Share to = shares.operand_dq();
  Cycles cycles = moved == 0 ? Cycles() : exchange(moved, moved, machine);
  if (to.is_padded)
    cycles += machine.launch + codelets::zero_cycles(to.elements * bytes, machine.workers);
  return cycles;
}

// The columns of a batch are cut equally over the tiles.
Share column_share(const Problem& problem, const device::Machine& machine) {
  const std::int64_t columns = ceil_div(problem.size.z, std::min(problem.size.z, machine.tiles));
  return {columns * problem.size.x, problem.size.x, false};
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
  const Share share = Shares(problem, plan).result_q();
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
  const std::int64_t values = plan.nonzeros_per_bucket;
  const std::int64_t bytes = values * bytes_of(problem.data_type);
  Cycles cycles = machine.launch + codelets::update_cycles(values, spec.update.kind,
                                                           problem.data_type, machine.workers);
  if (gradients_move(plan)) cycles += exchange(bytes, bytes, machine);
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
  const Shares shares(problem, plan);
  const Share result = shares.result_q();
  std::vector<WorkCost> work{{NetworkWork::Fwd, l, pass_cycles(plan, Pass::Fwd)}};
  if (layer.has_activation_step())
    work.push_back(
        {NetworkWork::Activate, l,
         machine.launch + codelets::activate_cycles(result.elements, result.rows, layer.activation,
                                                    problem.data_type, machine.workers)});
  if (!spec.loss) return work;
  if (l + 1 == std::ssize(spec.layers)) {
    const Share columns = column_share(problem, machine);
    const codelets::LossPart part{problem.size.x, columns.elements / problem.size.x,
                                  problem.size.z};
    const Share& next = layer.has_activation_step() ? result : shares.operand_dq();
    work.push_back(
        {NetworkWork::Loss, l,
         hand_over(result, columns, problem, machine) + machine.launch +
             codelets::loss_cycles(part, *spec.loss, problem.data_type, machine.workers)});
    work.push_back({NetworkWork::HandOver, l, hand_over(columns, next, problem, machine)});
  }
  if (layer.has_activation_step()) {
    work.push_back(
        {NetworkWork::Derivative, l, derivative_of_layer(layer, problem, result, machine)});
    work.push_back({NetworkWork::HandOver, l, regroup(shares, problem, machine)});
  }
  if (problem.grad_a) work.push_back({NetworkWork::GradA, l, pass_cycles(plan, Pass::GradA)});
  work.push_back({NetworkWork::GradW, l, pass_cycles(plan, Pass::GradW)});
  work.push_back({NetworkWork::Update, l, update_of_layer(spec, l, problem, plan, machine)});
  return work;
}

Cycles link_cycles(const NetworkSpec& spec, std::int64_t l, const Plan& plan, const Plan& next,
                   const device::Machine& machine) {
  const Problem problem = problem_of(spec, l), problem_of_next = problem_of(spec, l + 1);
  const Shares shares(problem, plan), next_shares(problem_of_next, next);
  const Share operand = next_shares.operand_s();
  if (shares.coincide_with(next_shares) && !operand.is_padded && !shares.result_q().is_padded)
    return {};
  Cycles cycles = hand_over(shares.result_q(), operand, problem, machine);
  if (!spec.loss) return cycles;
  const bool has_step = spec.layers[std::size_t(l)].has_activation_step();
  return cycles + hand_over(next_shares.result_ds(),
                            has_step ? shares.result_q() : shares.operand_dq(), problem, machine);
}

Bytes resident_bytes(const NetworkSpec& spec, std::int64_t l, const Plan& plan) {
  const Problem problem = problem_of(spec, l);
  const Share result = Shares(problem, plan).result_q();
  const std::int64_t states = spec.loss ? codelets::states_of(spec.update.kind) : 0;
  std::int64_t bytes = plan.cost.resident.value + result.elements * bytes_of(problem.data_type);
  bytes += states * plan.nonzeros_per_bucket * kFloatBytes;
  if (spec.layers[std::size_t(l)].bias) bytes += result.rows * kFloatBytes;
  return Bytes(bytes);
}

}  // namespace tessera::planner
