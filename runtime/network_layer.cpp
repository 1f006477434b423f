#include "tessera/runtime/internal/network_layer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

NetworkLayerState::NetworkLayerState(const NetworkLayer& l, const Problem& p,
                                     const codelets::Optimiser* optimiser, TileProgram& program)
    : layer(l),
      problem(p),
      program_(program),
      state_count_(optimiser != nullptr ? std::size_t(codelets::states_of(*optimiser)) : 0),
      optimiser_(optimiser) {
  parameters.bias.assign(std::size_t(p.size.x), 0);
  parameters.bias_states.assign(state_count_, parameters.bias);
}

void NetworkLayerState::set_result_homes(const TensorHome& result, const TensorHome* in_gradient) {
  sums = out = sums_again = out_again = out_grad = result;
  if (in_gradient != nullptr) in_grad = kept_before = *in_gradient;
  out_shares_ = SharesByTile(out, program_.engine().machine().tiles);
}

void NetworkLayerState::set_input(const TensorHome& input, const TensorHome& in_backward) {
  fwd_homes_.in = again_homes_.in = &input;
  grad_w_homes_.s = &in_backward;
}

void NetworkLayerState::set_dq(const TensorHome& dq) { grad_a_homes_.in = grad_w_homes_.q = &dq; }

void NetworkLayerState::set_gradient(const TensorHome& gradient, const TensorHome* kept) {
  gradient_ = &gradient;
  kept_ = kept;
  gradient_shares_ = SharesByTile(gradient, program_.engine().machine().tiles);
}

void NetworkLayerState::declare_resident() {
  declare_weights();
  for (std::size_t s = 0; s < state_count_; ++s) {
    state_buffers.push_back(
        program_.add_buffer(s == 0 ? "optimiser state" : "second optimiser state", true));
    for (UpdatedPart& part : parts)
      if (part.values.size() > 0)
        part.states.push_back(program_.add_slot(state_buffers.back(), part.tile, 1,
                                                part.values.size() * kFloatBytes, SlotKind::Owned));
  }
  if (!layer.bias) return;
  bias = rows_home(out);
  add_slots(program_, bias, "bias of the result", kFloatBytes, /*resident=*/true);
}

void NetworkLayerState::declare_load() {
  Uses loaded;
  add_loaded(loaded);
  if (layer.bias) loaded.writes.push_back(bias.buffer);
  loaded.add({{}, state_buffers});
  load_node_ = program_.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

void NetworkLayerState::declare_activation(Turn turn) {
  const TensorHome& summed = sums_of(turn);
  TensorHome& result = out_of(turn);
  result = summed;
  if (!has_activation_step()) return;
  if (layer.activation.keeps_sums()) add_slots(program_, result, "activation", element());
  Uses uses{{summed.buffer}, {summed.buffer, result.buffer}};
  if (layer.bias) uses.reads.push_back(bias.buffer);
  program_.compute(Phase::Activate, std::move(uses), out_shares_.tiles(),
                   [this, turn](const device::Tile& tile) { return activate(turn, tile); });
}

Cycles NetworkLayerState::activate(Turn turn, const device::Tile& tile) {
  const std::size_t index = out_shares_.index(tile.id());
  const codelets::ElementRun run = out.run_of(out.shares[index]);
  const float* added = layer.bias ? floats(tile.view(bias.shares[index].slot)) : nullptr;
  std::byte* from = tile.view(sums_of(turn).shares[index].slot).data;
  std::byte* to = tile.view(out_of(turn).shares[index].slot).data;
  with_type(problem.data_type, [&]<class T>(T) {
    codelets::add_bias_and_activate(run, added, layer.activation, reinterpret_cast<T*>(from),
                                    reinterpret_cast<T*>(to));
  });
  return codelets::activate_cycles(run.size(), run.rows(), layer.activation, problem.data_type,
                                   program_.engine().machine().workers);
}

void NetworkLayerState::declare_derivative() {
  Uses uses{{gradient_->buffer}, {gradient_->buffer}};
  if (kept_ != nullptr) uses.reads.push_back(kept_->buffer);
  if (layer.bias) {
    row_sums = rows_home(*gradient_);
    add_slots(program_, row_sums, "bias gradient of the rows", kFloatBytes);
    uses.writes.push_back(row_sums.buffer);
  }
  program_.compute(Phase::Activate, std::move(uses), gradient_shares_.tiles(),
                   [this](const device::Tile& tile) { return differentiate(tile); });
}

Cycles NetworkLayerState::differentiate(const device::Tile& tile) const {
  const std::size_t index = gradient_shares_.index(tile.id());
  const codelets::ElementRun run = gradient_->run_of(gradient_->shares[index]);
  const std::byte* kept = kept_ != nullptr ? tile.view(kept_->shares[index].slot).data : nullptr;
  std::byte* gradient = tile.view(gradient_->shares[index].slot).data;
  float* row_sum = layer.bias ? floats(tile.view(row_sums.shares[index].slot)) : nullptr;
  with_type(problem.data_type, [&]<class T>(T) {
    auto* values_of_gradient = reinterpret_cast<T*>(gradient);
    codelets::multiply_by_derivative(run.size(), layer.activation, reinterpret_cast<const T*>(kept),
                                     values_of_gradient);
    if (row_sum != nullptr) codelets::sum_rows(run, values_of_gradient, row_sum);
  });
  const std::int64_t workers = program_.engine().machine().workers;
  Cycles cycles =
      codelets::derivative_cycles(run.size(), layer.activation, problem.data_type, workers);
  if (layer.bias)
    cycles += codelets::sum_rows_cycles(run.size(), run.rows(), problem.data_type, workers);
  return cycles;
}

void NetworkLayerState::declare_grad_a() {
  if (grad_a_homes_.beside.to != nullptr)
    add_slots(program_, kept_before, "result of the layer before", element());
  declare_product(Pass::GradA, Turn::First).give_slots(in_grad);
}

void NetworkLayerState::declare_update() {
  const BufferId gradients = declare_gradients_at_home(), weights = value_buffers().front();
  for (const UpdatedPart& part : parts)
    if (part.values.size() > 0) updated_tiles_.push_back(part.tile);
  Uses uses{{gradients, weights}, {weights}};
  uses.add({{}, state_buffers});
  program_.compute(Phase::Update, std::move(uses), updated_tiles_,
                   [this](const device::Tile& tile) { return update(tile); });
}

Cycles NetworkLayerState::update(const device::Tile& tile) const {
  const UpdatedPart& part = parts[std::size_t(tile.id().value)];
  const std::int64_t count = part.values.size();
  std::array<float*, codelets::kMostStates> pointers{};
  for (std::size_t s = 0; s < part.states.size(); ++s)
    pointers[s] = floats(tile.view(part.states[s]));
  with_type(problem.data_type, [&]<class T>(T) {
    const auto* gradients = reinterpret_cast<const T*>(tile.view(part.gradients).data);
    codelets::update_values<T>(*optimiser_, parameters.steps + 1, {gradients, std::size_t(count)},
                               {pointers.data(), part.states.size()},
                               reinterpret_cast<T*>(tile.view(part.weights).data));
  });
  return codelets::update_cycles(count, *optimiser_, problem.data_type,
                                 program_.engine().machine().workers);
}

void NetworkLayerState::declare_collect() {
  Uses uses{value_buffers(), {}};
  uses.add({state_buffers, {}});
  program_.step(NodeKind::Collect, {}, uses, [this] { collect(); });
}

void NetworkLayerState::reset_states(std::int64_t values) {
  parameters.states.assign(state_count_, std::vector<float>(std::size_t(values)));
  for (std::vector<float>& state : parameters.bias_states)
    std::fill(state.begin(), state.end(), 0.0f);
  parameters.steps = 0;
}

namespace {

[[noreturn]] void refuse_buckets() { throw_invalid("a dense layer has no buckets"); }

}  // namespace

partitioner::SavedWeights NetworkLayerState::saved_weights() const { refuse_buckets(); }
void NetworkLayerState::restore_weights(const partitioner::SavedWeights&) { refuse_buckets(); }

Bytes NetworkLayerState::state_bytes() const {
  return Bytes(value_bytes().value / element() * std::ssize(state_buffers) * kFloatBytes);
}

// A dense layer multiplies what was planned.
Cycles NetworkLayerState::multiply_excess(const planner::Plan&, Pass) const { return {}; }

void NetworkLayerState::load() {
  device::Engine& engine = program_.engine();
  const auto load_values = [&](const UpdatedPart& part, const std::vector<std::byte>& from) {
    const std::int64_t bytes = part.values.size() * element();
    if (bytes > 0)
      engine.load(part.weights, rows_at(from.data() + part.values.begin * element(),
                                        bytes / part.row_bytes, part.row_bytes));
  };
  for (const UpdatedPart& part : copies) load_values(part, parameters.copy);
  for (const UpdatedPart& part : parts) {
    load_values(part, parameters.values);
    for (std::size_t s = 0; s < part.states.size(); ++s)
      engine.load(part.states[s], one_row(parameters.states[s].data() + part.values.begin,
                                          part.values.size() * kFloatBytes));
  }
  if (layer.bias)
    load_matrix(engine, bias, DataType::Float, column_of(std::span<const float>(parameters.bias)));
}

void NetworkLayerState::collect() {
  after = parameters;
  const auto collect_values = [&](const UpdatedPart& part, std::vector<std::byte>& to) {
    if (part.values.size() > 0)
      std::memcpy(to.data() + part.values.begin * element(),
                  program_.engine().view(part.weights).data,
                  std::size_t(part.values.size() * element()));
  };
  for (const UpdatedPart& part : copies) collect_values(part, after.copy);
  for (const UpdatedPart& part : parts) {
    collect_values(part, after.values);
    for (std::size_t s = 0; s < part.states.size(); ++s)
      std::copy_n(floats(program_.engine().view(part.states[s])), part.values.size(),
                  after.states[s].begin() + part.values.begin);
  }
}

}  // namespace tessera::runtime::internal
