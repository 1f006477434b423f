#include "tessera/runtime/internal/network_layer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

namespace {

planner::TwoProblems problems_of_layouts(const Problem& problem, const planner::Plan& plan) {
  if (plan.backward.empty()) return {problem, {}};
  return planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
}

}  // namespace

NetworkLayerState::NetworkLayerState(const NetworkLayer& l, const Problem& p,
                                     const planner::Plan& plan, const NetworkMachine& machine,
                                     std::int64_t state_count)
    : layer(l),
      problem(p),
      machine_(machine),
      forward_(problems_of_layouts(p, plan).forward, plan, machine),
      fwd_(forward_.spec(Pass::Fwd), machine.program, machine.engine, &fwd_homes_) {
  if (!plan.backward.empty())
    transposed_.emplace(problems_of_layouts(p, plan).transposed, plan.backward.front(), machine);
  make_passes();
  make_homes();
  states.resize(std::size_t(state_count));
  parameters.bias.assign(std::size_t(p.size.x), 0);
  parameters.bias_states.assign(states.size(), parameters.bias);
  out_shares_ = SharesByTile(out, machine.engine.machine().tiles);
}

void NetworkLayerState::make_passes() {
  BoundProgram& program = machine_.program;
  device::Engine& engine = machine_.engine;
  if (problem.grad_a)
    grad_a_.emplace(transposed_ ? transposed_->spec(Pass::Fwd) : forward_.spec(Pass::GradA),
                    program, engine, &grad_a_homes_);
  if (problem.grad_w)
    grad_w_ = make_grad_w(updated().spec(Pass::GradW), grad_w_exchange(updated().plan), program,
                          engine, &grad_w_homes_);
  if (transposed_)
    rehome_.emplace(RehomeSpec{updated().grid, other().grid}, program, engine, &rehome_homes_);
}

void NetworkLayerState::make_homes() {
  const Dims& size = problem.size;
  sums = out = out_grad = result_home(fwd_.spec, size.x, size.z);
  if (grad_a_) in_grad = kept_before = result_home(grad_a_->spec, size.y, size.z);
}

void NetworkLayerState::set_input(const TensorHome& input) {
  fwd_homes_.in = &input;
  const bool is_here = grad_w_ && !updates_transposed() && fwd_.sharers() == 1;
  fwd_homes_.cleared = is_here ? Cleared::All : Cleared::Rows;
  (updates_transposed() ? grad_w_homes_.q : grad_w_homes_.s) = is_here ? &fwd_.slices : &input;
}

void NetworkLayerState::set_gradient(const TensorHome& gradient, const TensorHome* kept) {
  gradient_ = &gradient;
  kept_ = kept;
  grad_a_homes_.in = &gradient;
  const bool is_same_layout = has_two_layouts() == updates_transposed();
  const bool is_here =
      grad_a_ && is_same_layout && grad_a_->sharers() == 1 && !grad_w_->cells_move();
  (updates_transposed() ? grad_w_homes_.s : grad_w_homes_.q) =
      is_here ? &grad_a_->slices : &gradient;
  gradient_shares_ = SharesByTile(gradient, machine_.engine.machine().tiles);
}

void NetworkLayerState::bring_with_grad_a(const TensorHome& from, const TensorHome& to) {
  grad_a_homes_.also_from = &from;
  grad_a_homes_.also_to = &to;
}

void NetworkLayerState::declare_resident() {
  BoundProgram& program = machine_.program;
  forward_.declare_resident("");
  if (transposed_) transposed_->declare_resident(" of the second layout");
  for (std::size_t s = 0; s < states.size(); ++s)
    state_buffers.push_back(
        program.add_buffer(s == 0 ? "optimiser state" : "second optimiser state", true));
  if (layer.bias) bias_buffer = program.add_buffer("bias of the result", /*resident=*/true);
  forward_.give_buffers(fwd_homes_, Pass::Fwd);
  if (grad_a_) (transposed_ ? *transposed_ : forward_).give_buffers(grad_a_homes_, grad_a_->pass());
  updated().give_buffers(grad_w_homes_, Pass::GradW);
  if (transposed_) rehome_homes_ = {updated().values_buffer, other().values_buffer, {}, {}};
}

void NetworkLayerState::declare_load() {
  Uses loaded;
  forward_.add_loaded(loaded);
  if (transposed_) transposed_->add_loaded(loaded);
  if (layer.bias) loaded.writes.push_back(bias_buffer);
  loaded.writes.insert(loaded.writes.end(), state_buffers.begin(), state_buffers.end());
  load_node_ = machine_.program.step(NodeKind::Load, {}, loaded, [this] { load(); });
  if (rehome_) rehome_->declare_load();
}

void NetworkLayerState::complete_load() {
  const auto add = [this](const TravelLoop& loop) {
    if (loop.possible()) machine_.program.also_writes(load_node_, loop.words());
  };
  add(fwd_.loop);
  if (grad_a_) add(grad_a_->loop);
  if (grad_w_) add(grad_w_->loop);
}

void NetworkLayerState::declare_activation() {
  sums.buffer = fwd_.reduction.result();
  out.buffer = sums.buffer;
  if (!has_activation_step()) return;
  if (layer.activation.keeps_sums()) out.buffer = machine_.program.add_buffer("activation");
  Uses uses{{sums.buffer}, {sums.buffer, out.buffer}};
  if (layer.bias) uses.reads.push_back(bias_buffer);
  machine_.program.step(
      NodeKind::Compute, Phase::Activate, uses, [this] { activate(); },
      std::ssize(out_shares_.tiles()));
}

void NetworkLayerState::activate() {
  machine_.engine.compute(Phase::Activate, out_shares_.tiles(), [this](const device::Tile& tile) {
    const std::size_t index = out_shares_.index(tile.id());
    const codelets::ElementRun run = run_of(out.shares[index]);
    const float* added =
        layer.bias ? reinterpret_cast<const float*>(tile.view(bias[index]).data) : nullptr;
    std::byte* from = tile.view(sums.shares[index].slot).data;
    std::byte* to = tile.view(out.shares[index].slot).data;
    with_type(problem.data_type, [&](auto zero) {
      using T = decltype(zero);
      codelets::add_bias_and_activate(run, added, layer.activation, reinterpret_cast<T*>(from),
                                      reinterpret_cast<T*>(to));
    });
    return codelets::activate_cycles(run.size(), run.rows(), layer.activation, problem.data_type,
                                     machine_.engine.machine().workers);
  });
}

void NetworkLayerState::declare_grad_a() {
  if (grad_a_homes_.also_to != nullptr)
    kept_before.buffer = machine_.program.add_buffer("result of the layer before");
  grad_a_->declare();
  in_grad.buffer = grad_a_->reduction.result();
}

void NetworkLayerState::declare_derivative() {
  if (layer.bias) row_sums_buffer = machine_.program.add_buffer("bias gradient of the rows");
  Uses uses{{gradient_->buffer}, {gradient_->buffer}};
  if (kept_ != nullptr) uses.reads.push_back(kept_->buffer);
  if (layer.bias) uses.writes.push_back(row_sums_buffer);
  machine_.program.step(
      NodeKind::Compute, Phase::Activate, uses, [this] { differentiate(); },
      std::ssize(gradient_shares_.tiles()));
}

void NetworkLayerState::differentiate() {
  auto differentiate_on = [this](const device::Tile& tile) {
    const std::size_t index = gradient_shares_.index(tile.id());
    const codelets::ElementRun run = run_of(gradient_->shares[index]);
    const std::byte* kept = kept_ != nullptr ? tile.view(kept_->shares[index].slot).data : nullptr;
    std::byte* gradient = tile.view(gradient_->shares[index].slot).data;
    float* row_sum =
        layer.bias ? reinterpret_cast<float*>(tile.view(row_sums[index]).data) : nullptr;
    with_type(problem.data_type, [&](auto zero) {
      using T = decltype(zero);
      auto* values_of_gradient = reinterpret_cast<T*>(gradient);
      codelets::multiply_by_derivative(run.size(), layer.activation,
                                       reinterpret_cast<const T*>(kept), values_of_gradient);
      if (row_sum != nullptr) codelets::sum_rows(run, values_of_gradient, row_sum);
    });
    const std::int64_t workers = machine_.engine.machine().workers;
    Cycles cycles =
        codelets::derivative_cycles(run.size(), layer.activation, problem.data_type, workers);
    if (layer.bias)
      cycles += codelets::sum_rows_cycles(run.size(), run.rows(), problem.data_type, workers);
    return cycles;
  };
  machine_.engine.compute(Phase::Activate, gradient_shares_.tiles(), differentiate_on);
}

void NetworkLayerState::declare_collect() {
  Uses uses{{updated().values_buffer}, {}};
  if (transposed_) uses.reads.push_back(other().values_buffer);
  uses.reads.insert(uses.reads.end(), state_buffers.begin(), state_buffers.end());
  machine_.program.step(NodeKind::Collect, {}, uses, [this] { collect(); });
}

void NetworkLayerState::add_slots() {
  add_parameter_slots();
  fwd_.add_slots();
  if (grad_a_) grad_a_->add_slots();
  if (grad_w_) grad_w_->add_slots();
  if (rehome_) rehome_->add_slots();
  take_result_slots();
  out.shares = sums.shares;
  if (layer.activation.keeps_sums()) add_result_slots(out);
  if (gradient_ == &out_grad) add_result_slots(out_grad);
  if (grad_a_homes_.also_to != nullptr) add_result_slots(kept_before);
  if (layer.bias) add_bias_slots();
}

// The reduction lists its shares column by column.
void NetworkLayerState::take_result_slots() {
  const auto take = [](TensorHome& home, const Reduction& reduction) {
    TESSERA_ASSERT(reduction.shares().size() == home.shares.size());
    for (const ReducedShare& share : reduction.shares()) {
      const auto is_before = [&](const HomeShare& of_home) { return of_home.tile < share.tile; };
      HomeShare& own = *std::partition_point(home.shares.begin(), home.shares.end(), is_before);
      TESSERA_ASSERT(own.tile == share.tile && own.elements == share.elements);
      own.slot = share.slot;
    }
  };
  take(sums, fwd_.reduction);
  if (grad_a_) take(in_grad, grad_a_->reduction);
}

void NetworkLayerState::add_parameter_slots() {
  forward_.add_slots();
  if (transposed_) transposed_->add_slots();
  const std::int64_t state_bytes = updated().values_per_bucket() * std::int64_t(sizeof(float));
  for (std::size_t s = 0; s < states.size(); ++s)
    for (const TileId tile : updated().map.all())
      states[s].push_back(machine_.engine.add_slot(
          machine_.program.slot(state_buffers[s], tile, 1, state_bytes, SlotKind::Owned)));
  forward_.give_slots(fwd_homes_, Pass::Fwd);
  if (grad_a_) (transposed_ ? *transposed_ : forward_).give_slots(grad_a_homes_, grad_a_->pass());
  updated().give_slots(grad_w_homes_, Pass::GradW);
  if (!transposed_) return;
  rehome_homes_.from = updated().values;
  rehome_homes_.to = other().values;
}

void NetworkLayerState::add_result_slots(TensorHome& home) {
  for (HomeShare& share : home.shares)
    share.slot = machine_.engine.add_slot(machine_.program.slot(
        home.buffer, share.tile, share.elements.size(), element(), SlotKind::Owned));
}

void NetworkLayerState::add_bias_slots() {
  const auto add = [this](BufferId buffer, const HomeShare& share) {
    return machine_.engine.add_slot(machine_.program.slot(buffer, share.tile, run_of(share).rows(),
                                                          sizeof(float), SlotKind::Owned));
  };
  for (const HomeShare& share : out.shares) bias.push_back(add(bias_buffer, share));
  if (gradient_ == nullptr) return;
  for (const HomeShare& share : gradient_->shares) row_sums.push_back(add(row_sums_buffer, share));
}

void NetworkLayerState::prepare() {
  fwd_.prepare();
  if (grad_a_) grad_a_->prepare();
  if (grad_w_) grad_w_->prepare();
  if (rehome_) rehome_->prepare();
}

std::optional<partitioner::Misfit> NetworkLayerState::set_weights(
    const sparse::CheckedCsr<float>& given) {
  check_weights(problem, {&given, 1});  // so that messages name rows and columns of R
  std::vector<std::int64_t> places;
  if (transposed_) {
    const sparse::CheckedCsr<float> transposed = sparse::transpose(given);
    places = sparse::transpose_order(transposed);
    if (auto misfit = transposed_->weights.encode({&transposed, 1}, {})) return misfit;
  }
  if (auto misfit = forward_.weights.encode({&given, 1}, {})) return misfit;
  forward_.weights.take();
  if (transposed_) transposed_->weights.take();
  places_ = std::move(places);
  set_parameters();
  return std::nullopt;
}

Bytes NetworkLayerState::pattern_bytes() const {
  Bytes bytes = forward_.weights.pattern_bytes().all();
  if (!transposed_) return bytes;
  const std::int64_t tables = other().grid.buckets() * rehome_->table_bytes();
  return bytes + transposed_->weights.pattern_bytes().all() + Bytes(tables);
}

void NetworkLayerState::set_parameters() {
  const auto values_of = [](const NetworkLayout& layout) {
    const std::byte* first = layout.weights.image().values;
    return std::vector<std::byte>(first, first + layout.values_bytes());
  };
  parameters.values = values_of(updated());
  parameters.copy = transposed_ ? values_of(other()) : std::vector<std::byte>();
  const std::int64_t values = updated().grid.buckets() * updated().values_per_bucket();
  parameters.states.assign(states.size(), std::vector<float>(std::size_t(values)));
  for (std::vector<float>& state : parameters.bias_states)
    std::fill(state.begin(), state.end(), 0.0f);
  parameters.steps = 0;
  if (!transposed_) return;
  std::vector<std::int64_t> forward = forward_.weights.bucket_positions(0);
  const std::vector<std::int64_t> in_transposed = transposed_->weights.bucket_positions(0);
  std::vector<std::int64_t> moved(forward.size());
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = in_transposed[std::size_t(places_[i])];
  if (updates_transposed()) forward.swap(moved);
  rehome_->tables.set_pattern(0, forward, moved);
}

sparse::Csr<float> NetworkLayerState::current_weights() {
  const std::vector<std::byte>& values = updates_transposed() ? parameters.copy : parameters.values;
  sparse::Csr<float> result;
  with_type(problem.data_type, [&](auto zero) {
    using T = decltype(zero);
    forward_.weights.to_given<T>(
        {reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T)}, 0, result);
  });
  return result;
}

void NetworkLayerState::load() {
  device::Engine& engine = machine_.engine;
  const auto load_loop = [&](TravelLoop& loop, const NetworkLayout& layout) {
    if (loop.possible()) loop.load(engine, layout.weights.image().travel_words);
  };
  load_loop(fwd_.loop, forward_);
  if (grad_a_) load_loop(grad_a_->loop, transposed_ ? *transposed_ : forward_);
  if (grad_w_) load_loop(grad_w_->loop, updated());
  if (grad_w_) grad_w_->start();
  updated().load(parameters.values.data());
  if (transposed_) other().load(parameters.copy.data());
  const std::int64_t per_bucket = updated().values_per_bucket();
  for (std::size_t s = 0; s < states.size(); ++s)
    for (std::size_t t = 0; t < states[s].size(); ++t)
      engine.load(states[s][t],
                  one_row(parameters.states[s].data() +
                              updated().bucket_of(TileId(std::int64_t(t))) * per_bucket,
                          per_bucket * std::int64_t(sizeof(float))));
  if (layer.bias) load_bias();
}

void NetworkLayerState::load_bias() {
  for (std::size_t i = 0; i < out.shares.size(); ++i) {
    const codelets::ElementRun run = run_of(out.shares[i]);
    std::vector<float> rows(std::size_t(run.rows()));
    const std::int64_t first = out.shares[i].row_of(run.begin);
    for (std::int64_t r = 0; r < run.rows(); ++r)
      if (first + r < problem.size.x)
        rows[std::size_t(r)] = parameters.bias[std::size_t(first + r)];
    machine_.engine.load(bias[i], {reinterpret_cast<std::byte*>(rows.data()), run.rows(),
                                   sizeof(float), sizeof(float)});
  }
}

void NetworkLayerState::collect() {
  after = parameters;
  updated().collect(after.values.data());
  if (transposed_) other().collect(after.copy.data());
  const std::int64_t per_bucket = updated().values_per_bucket();
  if (per_bucket == 0) return;
  for (std::size_t s = 0; s < states.size(); ++s)
    for (std::size_t t = 0; t < states[s].size(); ++t)
      std::memcpy(
          after.states[s].data() + updated().bucket_of(TileId(std::int64_t(t))) * per_bucket,
          machine_.engine.view(states[s][t]).data, std::size_t(per_bucket) * sizeof(float));
}

}  // namespace tessera::runtime::internal
