#include "tessera/runtime/internal/network_layer.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"

namespace tessera::runtime::internal {

using device::SlotId;
using device::SlotKind;

NetworkLayerState::NetworkLayerState(const NetworkLayer& l, const Problem& p,
                                     const planner::Plan& plan, const NetworkMachine& machine,
                                     std::int64_t state_count)
    : layer(l),
      problem(p),
      weights(p, tile_grid(p, plan, machine.engine.machine()), machine.executor),
      machine_(machine),
      grid_(tile_grid(p, plan, machine.engine.machine())),
      shape_(values_shape(spec_of(p, plan, grid_, Pass::Fwd))),
      fwd_(spec_of(p, plan, grid_, Pass::Fwd), machine.program, machine.engine, &fwd_homes_) {
  partitioner::check(grid_);
  if (p.grad_a)
    grad_a_.emplace(spec_of(p, plan, grid_, Pass::GradA), machine.program, machine.engine,
                    &grad_a_homes_);
  if (p.grad_w)
    grad_w_ = make_grad_w(spec_of(p, plan, grid_, Pass::GradW), grad_w_exchange(plan),
                          machine.program, machine.engine, &grad_w_homes_);
  const Dims& size = p.size;
  in = operand_home(grid_, false, size.y, size.z);
  sums = out = out_grad = result_home(fwd_.spec, size.x, size.z);
  q_grad = operand_home(grid_, true, size.x, size.z);
  if (grad_a_) in_grad = result_home(grad_a_->spec, size.y, size.z);
  states.resize(std::size_t(state_count));
  parameters.bias.assign(std::size_t(size.x), 0);
  parameters.bias_states.assign(states.size(), parameters.bias);
  share_index_.assign(std::size_t(machine.engine.machine().tiles), -1);
  for (std::size_t i = 0; i < out.shares.size(); ++i) {
    share_index_[std::size_t(out.shares[i].tile.value)] = static_cast<std::int32_t>(i);
    out_tiles_.push_back(out.shares[i].tile);
  }
}

void NetworkLayerState::declare_resident() {
  BoundProgram& program = machine_.program;
  words_buffer_ = program.add_buffer("bucket words", /*resident=*/true);
  if (grid_.separate_grad_a)
    grad_a_words_buffer_ = program.add_buffer("words of GradA", /*resident=*/true);
  values_buffer = program.add_buffer("bucket values", /*resident=*/true);
  for (std::size_t s = 0; s < states.size(); ++s)
    state_buffers.push_back(
        program.add_buffer(s == 0 ? "optimiser state" : "second optimiser state", true));
  if (layer.bias) bias_buffer = program.add_buffer("bias of the result", /*resident=*/true);
  in.buffer = program.add_buffer("operand share");
  if (grad_w_) q_grad.buffer = program.add_buffer("output gradient share");
  const bool own_words = grid_.separate_grad_a;
  fwd_homes_.bucket_buffers = grad_w_homes_.bucket_buffers = {words_buffer_, values_buffer};
  grad_a_homes_.bucket_buffers = {own_words ? grad_a_words_buffer_ : words_buffer_, values_buffer};
  fwd_homes_.in.buffer = grad_w_homes_.s.buffer = in.buffer;
  grad_a_homes_.in.buffer = grad_w_homes_.q.buffer = q_grad.buffer;
}

std::vector<TravelLoop*> NetworkLayerState::loops() {
  std::vector<TravelLoop*> all{&fwd_.loop};
  if (grad_a_) all.push_back(&grad_a_->loop);
  if (grad_w_) all.push_back(&grad_w_->loop);
  std::erase_if(all, [](const TravelLoop* loop) { return !loop->possible(); });
  return all;
}

void NetworkLayerState::declare_load() {
  Uses loaded{{}, {words_buffer_, values_buffer}};
  if (grid_.separate_grad_a) loaded.writes.push_back(grad_a_words_buffer_);
  if (layer.bias) loaded.writes.push_back(bias_buffer);
  loaded.writes.insert(loaded.writes.end(), state_buffers.begin(), state_buffers.end());
  load_node_ = machine_.program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

void NetworkLayerState::complete_load() {
  for (const TravelLoop* loop : loops()) machine_.program.also_writes(load_node_, loop->words());
}

void NetworkLayerState::declare_activation() {
  sums.buffer = fwd_.reduction.result();
  out.buffer = sums.buffer;
  if (!has_activation_step()) return;
  if (layer.activation.keeps_sums()) out.buffer = machine_.program.add_buffer("activation");
  Uses uses{{sums.buffer}, {sums.buffer, out.buffer}};
  if (layer.bias) uses.reads.push_back(bias_buffer);
  machine_.program.step(
      NodeKind::Compute, Phase::Activate, uses, [this] { activate(); }, std::ssize(out_tiles_));
}

void NetworkLayerState::activate() {
  machine_.engine.compute(Phase::Activate, out_tiles_, [this](const device::Tile& tile) {
    const auto index = std::size_t(share_index_[std::size_t(tile.id().value)]);
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

void NetworkLayerState::declare_derivative() {
  if (layer.bias) row_sums_buffer = machine_.program.add_buffer("bias gradient of the rows");
  // `sums` has what the derivative needs: results are in the same slots unless sums are kept.
  Uses uses{{sums.buffer, out_grad.buffer}, {out_grad.buffer}};
  if (layer.bias) uses.writes.push_back(row_sums_buffer);
  machine_.program.step(
      NodeKind::Compute, Phase::Activate, uses, [this] { differentiate(); },
      std::ssize(out_tiles_));
}

void NetworkLayerState::differentiate() {
  machine_.engine.compute(Phase::Activate, out_tiles_, [this](const device::Tile& tile) {
    const auto index = std::size_t(share_index_[std::size_t(tile.id().value)]);
    const codelets::ElementRun run = run_of(out.shares[index]);
    const std::byte* kept = tile.view(sums.shares[index].slot).data;
    std::byte* gradient = tile.view(out_grad.shares[index].slot).data;
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
  });
}

void NetworkLayerState::declare_collect() {
  Uses uses{{values_buffer}, {}};
  uses.reads.insert(uses.reads.end(), state_buffers.begin(), state_buffers.end());
  machine_.program.step(NodeKind::Collect, {}, uses, [this] { collect(); });
}

void NetworkLayerState::add_slots() {
  add_parameter_slots();
  add_operand_slots(in, in_matrix_, grid_.size.y);
  for (const HomeShare& share : in.shares) {
    fwd_homes_.in.slots.push_back(share.slot);
    grad_w_homes_.s.slots.push_back(share.slot);
  }
  if (grad_w_) add_operand_slots(q_grad, q_grad_matrix_, grid_.size.x);
  for (const HomeShare& share : q_grad.shares) {
    grad_a_homes_.in.slots.push_back(share.slot);
    grad_w_homes_.q.slots.push_back(share.slot);
  }
  fwd_.add_slots();
  if (grad_a_) grad_a_->add_slots();
  if (grad_w_) grad_w_->add_slots();
  // The reduction lists its shares column by column.
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
  out.shares = sums.shares;
  if (layer.activation.keeps_sums()) add_result_slots(out);
  if (grad_w_ && has_derivative()) add_result_slots(out_grad);
  if (layer.bias) add_bias_slots();
}

void NetworkLayerState::add_parameter_slots() {
  const auto add = [this](BufferId buffer, TileId tile, std::int64_t bytes, SlotKind kind) {
    return machine_.engine.add_slot(machine_.program.slot(buffer, tile, 1, bytes, kind));
  };
  const std::int64_t word_bytes = fwd_.spec.word_bytes();
  for (const TileId tile : fwd_.all) {
    words_.push_back(add(words_buffer_, tile, grid_.meta_words * word_bytes, SlotKind::Landing));
    values.push_back(add(values_buffer, tile, bucket_bytes(), SlotKind::Owned));
    if (grid_.separate_grad_a)
      grad_a_words_.push_back(
          add(grad_a_words_buffer_, tile, grid_.grad_a_words * word_bytes, SlotKind::Landing));
    for (std::size_t s = 0; s < states.size(); ++s)
      states[s].push_back(add(state_buffers[s], tile,
                              values_per_bucket() * std::int64_t(sizeof(float)), SlotKind::Owned));
    const auto t = std::size_t(tile.value);
    fwd_homes_.buckets.push_back({words_[t], values[t]});
    grad_a_homes_.buckets.push_back(
        {grid_.separate_grad_a ? grad_a_words_[t] : words_[t], values[t]});
  }
  grad_w_homes_.buckets = fwd_homes_.buckets;
}

void NetworkLayerState::add_operand_slots(TensorHome& home, std::vector<std::byte>& placed,
                                          std::int64_t rows) {
  const std::int64_t row_bytes = grid_.size.z * element();
  const bool is_placed = machine_.engine.mode() == device::ExchangeMode::Share;
  if (is_placed) placed.resize(std::size_t(rows * row_bytes));
  for (HomeShare& share : home.shares) {
    const std::int64_t width = share.width * element();
    device::SlotSpec spec = machine_.program.slot(
        home.buffer, share.tile, share.elements.size() / share.width, width, SlotKind::Owned);
    if (is_placed)
      spec.placed = {placed.data() + share.first_row * row_bytes + share.first_col * element(),
                     spec.rows, width, row_bytes};
    share.slot = machine_.engine.add_slot(spec);
  }
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
  for (const HomeShare& share : out.shares) {
    bias.push_back(add(bias_buffer, share));
    if (grad_w_) row_sums.push_back(add(row_sums_buffer, share));
  }
}

void NetworkLayerState::prepare() {
  fwd_.prepare();
  if (grad_a_) grad_a_->prepare();
  if (grad_w_) grad_w_->prepare();
}

void NetworkLayerState::load() {
  device::Engine& engine = machine_.engine;
  const BucketImage image = weights.image();
  for (TravelLoop* loop : loops()) loop->load(engine, image.travel_words);
  if (grad_w_) grad_w_->start();
  const std::int64_t per_bucket = values_per_bucket();
  for (const TileId tile : fwd_.all) {
    const Cell c = fwd_.map.cell(tile);
    const std::int64_t bucket = grid_.bucket_index(c.x, c.y, c.z);
    const auto t = std::size_t(tile.value);
    const partitioner::Buckets& buckets = image.groups[0];
    engine.load(words_[t],
                one_row(buckets.meta_words(bucket), grid_.meta_words * fwd_.spec.word_bytes()));
    if (grid_.separate_grad_a)
      engine.load(grad_a_words_[t], one_row(buckets.grad_a_meta_words(bucket),
                                            grid_.grad_a_words * fwd_.spec.word_bytes()));
    engine.load(values[t],
                one_row(parameters.values.data() + bucket * bucket_bytes(), bucket_bytes()));
    for (std::size_t s = 0; s < states.size(); ++s)
      engine.load(states[s][t], one_row(parameters.states[s].data() + bucket * per_bucket,
                                        per_bucket * std::int64_t(sizeof(float))));
  }
  if (!layer.bias) return;
  for (std::size_t i = 0; i < out.shares.size(); ++i) {
    const codelets::ElementRun run = run_of(out.shares[i]);
    std::vector<float> rows(std::size_t(run.rows()));
    const std::int64_t first = out.shares[i].row_of(run.begin);
    for (std::int64_t r = 0; r < run.rows(); ++r)
      if (first + r < problem.size.x)
        rows[std::size_t(r)] = parameters.bias[std::size_t(first + r)];
    engine.load(bias[i], {reinterpret_cast<std::byte*>(rows.data()), run.rows(), sizeof(float),
                          sizeof(float)});
  }
}

void NetworkLayerState::collect() {
  after = parameters;
  const std::int64_t per_bucket = values_per_bucket();
  for (const TileId tile : fwd_.all) {
    const Cell c = fwd_.map.cell(tile);
    const std::int64_t bucket = grid_.bucket_index(c.x, c.y, c.z);
    const auto t = std::size_t(tile.value);
    if (per_bucket == 0) continue;
    std::memcpy(after.values.data() + bucket * bucket_bytes(), machine_.engine.view(values[t]).data,
                std::size_t(bucket_bytes()));
    for (std::size_t s = 0; s < states.size(); ++s)
      std::memcpy(after.states[s].data() + bucket * per_bucket,
                  machine_.engine.view(states[s][t]).data, std::size_t(per_bucket) * sizeof(float));
  }
}

}  // namespace tessera::runtime::internal
