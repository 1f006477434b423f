#include "tessera/runtime/internal/network_update.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotKind;

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::size_t kMostStates = 2;

float* floats(const device::ByteRows& rows) { return reinterpret_cast<float*>(rows.data); }

std::span<float* const> states_on(const device::Tile& tile,
                                  const std::vector<device::SlotId>& slots,
                                  std::array<float*, kMostStates>& pointers) {
  for (std::size_t s = 0; s < slots.size(); ++s) pointers[s] = floats(tile.view(slots[s]));
  return {pointers.data(), slots.size()};
}

}  // namespace

NetworkUpdate::NetworkUpdate(NetworkLayerState& layer, const codelets::UpdateRule& rule,
                             const NetworkMachine& machine)
    : layer_(layer), rule_(rule), machine_(machine) {}

bool NetworkUpdate::gradients_move() const {
  const TileMap &home = layer_.updated().map, &here = layer_.grad_w().map;
  const std::vector<TileId> all = home.all();
  return std::any_of(all.begin(), all.end(),
                     [&](TileId tile) { return home.cell(tile) != here.cell(tile); });
}

void NetworkUpdate::declare_resident() {
  if (!layer_.layer.bias) return;
  bias_buffer_ = machine_.program.add_buffer("bias", /*resident=*/true);
  for (std::size_t s = 0; s < layer_.states.size(); ++s)
    bias_state_buffers_.push_back(machine_.program.add_buffer(
        s == 0 ? "bias state" : "second bias state", /*resident=*/true));
}

void NetworkUpdate::declare_load() {
  if (!layer_.layer.bias) return;
  Uses uses{{}, {bias_buffer_}};
  uses.writes.insert(uses.writes.end(), bias_state_buffers_.begin(), bias_state_buffers_.end());
  machine_.program.step(NodeKind::Load, {}, uses, [this] { load(); });
}

void NetworkUpdate::declare() {
  BoundProgram& program = machine_.program;
  device::Engine& engine = machine_.engine;
  gradients_buffer_ = layer_.grad_w().use.result;
  if (gradients_move()) {
    const BufferId computed = gradients_buffer_;
    gradients_buffer_ = program.add_buffer("gradients at home");
    gradients_node_ =
        program.step(NodeKind::Exchange, Phase::Update, {{computed}, {gradients_buffer_}},
                     [&, this] { engine.exchange(Phase::Update, bring_gradients_); });
  }
  Uses uses{{gradients_buffer_, layer_.updated().values_buffer}, {layer_.updated().values_buffer}};
  uses.writes.insert(uses.writes.end(), layer_.state_buffers.begin(), layer_.state_buffers.end());
  program.step(
      NodeKind::Compute, Phase::Update, uses, [this] { update_weights(); },
      layer_.updated().map.tiles());
  if (!layer_.layer.bias) return;
  sums_buffer_ = program.add_buffer("bias gradient of others");
  sums_node_ =
      program.step(NodeKind::Exchange, Phase::Update, {{layer_.row_sums_buffer}, {sums_buffer_}},
                   [&, this] { engine.exchange(Phase::Update, bring_sums_); });
  Uses changed{{sums_buffer_}, {bias_buffer_}};
  changed.writes.insert(changed.writes.end(), bias_state_buffers_.begin(),
                        bias_state_buffers_.end());
  program.step(NodeKind::Compute, Phase::Update, changed, [this] { update_bias(); });
  send_node_ =
      program.step(NodeKind::Exchange, Phase::Update, {{bias_buffer_}, {layer_.bias_buffer}},
                   [&, this] { engine.exchange(Phase::Update, send_bias_); });
}

void NetworkUpdate::declare_collect() {
  if (!layer_.layer.bias) return;
  Uses uses{{bias_buffer_}, {}};
  uses.reads.insert(uses.reads.end(), bias_state_buffers_.begin(), bias_state_buffers_.end());
  machine_.program.step(NodeKind::Collect, {}, uses, [this] { collect(); });
}

void NetworkUpdate::add_slots() {
  if (gradients_move())
    for (const TileId tile : layer_.updated().map.all())
      gradients_.push_back(machine_.engine.add_slot(
          machine_.program.slot(gradients_buffer_, tile, 1, layer_.updated().bucket_bytes())));
  else
    for (const GradWPass::Base::TileSlots& slots : layer_.grad_w().tiles)
      gradients_.push_back(slots.result);
  if (layer_.layer.bias) add_bias_slots();
}

void NetworkUpdate::add_bias_slots() {
  const std::int64_t rows = layer_.problem.size.x;
  const std::int64_t parts = std::min(rows, machine_.engine.machine().tiles);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = share_of(rows, 1, parts, part);
    if (own.size() > 0) owners_.push_back({.tile = TileId(part), .rows = own});
  }
  const std::int64_t per_owner = owners_.front().rows.size();
  for (const HomeShare& share : layer_.out.shares)
    for (std::int64_t row = share.row_of(share.elements.begin);
         row <= share.row_of(share.elements.end - 1) && row < rows; ++row) {
      Owner& owner = owners_[std::size_t(row / per_owner)];
      owner.entry_rows.push_back(static_cast<std::int32_t>(row - owner.rows.begin));
    }
  const auto add = [this](BufferId buffer, TileId tile, std::int64_t count) {
    return machine_.engine.add_slot(
        machine_.program.slot(buffer, tile, count, kFloatBytes, SlotKind::Owned));
  };
  for (Owner& owner : owners_) {
    owner_tiles_.push_back(owner.tile);
    owner.bias = add(bias_buffer_, owner.tile, owner.rows.size());
    owner.sums = add(sums_buffer_, owner.tile, std::ssize(owner.entry_rows));
    for (const BufferId buffer : bias_state_buffers_)
      owner.states.push_back(add(buffer, owner.tile, owner.rows.size()));
  }
}

void NetworkUpdate::prepare() {
  if (gradients_move()) prepare_gradients();
  if (layer_.layer.bias) prepare_bias();
}

void NetworkUpdate::prepare_gradients() {
  std::vector<device::Gather> gathers;
  const GradWPass::Base& pass = layer_.grad_w();
  for (const TileId home : layer_.updated().map.all()) {
    const TileId here = pass.map.tile(layer_.updated().map.cell(home));
    gathers.push_back(
        {{{pass.slots_of(here).result, {0, 1}}}, {gradients_[std::size_t(home.value)]}});
  }
  bring_gradients_ = machine_.engine.prepare(std::move(gathers));
  machine_.program.set_moves(gradients_node_, bring_gradients_.moved);
}

// Sums arrive in the order of the shares, as entry_rows was made.
void NetworkUpdate::prepare_bias() {
  const std::int64_t rows = layer_.problem.size.x, per_owner = owners_.front().rows.size();
  std::vector<std::int64_t> arrived(owners_.size());
  std::vector<device::Move> sums, biases;
  for (std::size_t i = 0; i < layer_.out.shares.size(); ++i) {
    const HomeShare& share = layer_.out.shares[i];
    const std::int64_t first = share.row_of(share.elements.begin);
    const std::int64_t end = std::min(rows, share.row_of(share.elements.end - 1) + 1);
    for (std::int64_t row = first; row < end;) {
      const auto at = std::size_t(row / per_owner);
      const Owner& owner = owners_[at];
      const std::int64_t count = std::min(end, owner.rows.end) - row;
      const std::int64_t in_share = (row - first) * kFloatBytes, bytes = count * kFloatBytes;
      sums.push_back({layer_.row_sums[i], owner.sums, in_share, arrived[at] * kFloatBytes, bytes});
      biases.push_back(
          {owner.bias, layer_.bias[i], (row - owner.rows.begin) * kFloatBytes, in_share, bytes});
      arrived[at] += count;
      row += count;
    }
  }
  bring_sums_ = machine_.engine.prepare_moves(std::move(sums));
  send_bias_ = machine_.engine.prepare_moves(std::move(biases));
  machine_.program.set_moves(sums_node_, bring_sums_.moved);
  machine_.program.set_moves(send_node_, send_bias_.moved);
}

void NetworkUpdate::load() {
  for (const Owner& owner : owners_) {
    const auto rows = [&](const std::vector<float>& of_all) -> device::ByteRows {
      const auto* first = reinterpret_cast<const std::byte*>(of_all.data() + owner.rows.begin);
      return {const_cast<std::byte*>(first), owner.rows.size(), kFloatBytes, kFloatBytes};
    };
    machine_.engine.load(owner.bias, rows(layer_.parameters.bias));
    for (std::size_t s = 0; s < owner.states.size(); ++s)
      machine_.engine.load(owner.states[s], rows(layer_.parameters.bias_states[s]));
  }
}

void NetworkUpdate::collect() {
  for (const Owner& owner : owners_) {
    const auto take = [&](device::SlotId slot, std::vector<float>& to) {
      std::copy_n(floats(machine_.engine.view(slot)), owner.rows.size(),
                  to.begin() + owner.rows.begin);
    };
    take(owner.bias, layer_.after.bias);
    for (std::size_t s = 0; s < owner.states.size(); ++s)
      take(owner.states[s], layer_.after.bias_states[s]);
  }
}

void NetworkUpdate::update_weights() {
  machine_.engine.compute(
      Phase::Update, layer_.updated().map.all(), [this](const device::Tile& tile) {
        const auto t = std::size_t(tile.id().value);
        const std::int64_t count = layer_.updated().values_per_bucket();
        std::array<float*, kMostStates> pointers{};
        for (std::size_t s = 0; s < layer_.states.size(); ++s)
          pointers[s] = floats(tile.view(layer_.states[s][t]));
        with_type(layer_.problem.data_type, [&](auto zero) {
          using T = decltype(zero);
          const auto* gradients = reinterpret_cast<const T*>(tile.view(gradients_[t]).data);
          codelets::update_values<T>(
              rule_, step_, {gradients, std::size_t(count)},
              {pointers.data(), layer_.states.size()},
              reinterpret_cast<T*>(tile.view(layer_.updated().values[t]).data));
        });
        return codelets::update_cycles(count, rule_.kind, layer_.problem.data_type,
                                       machine_.engine.machine().workers);
      });
}

void NetworkUpdate::update_bias() {
  machine_.engine.compute(Phase::Update, owner_tiles_, [this](const device::Tile& tile) {
    return update_rows(owners_[std::size_t(tile.id().value)], tile);
  });
}

Cycles NetworkUpdate::update_rows(Owner& owner, const device::Tile& tile) const {
  const std::int64_t rows = owner.rows.size(), workers = machine_.engine.machine().workers;
  float* const sums = floats(tile.view(owner.sums));
  std::vector<float>& gradient = owner.gradient;
  gradient.assign(std::size_t(rows), 0);
  for (std::size_t i = 0; i < owner.entry_rows.size(); ++i)
    gradient[std::size_t(owner.entry_rows[i])] += sums[i];
  std::array<float*, kMostStates> pointers{};
  codelets::update_values<float>(rule_, step_, gradient, states_on(tile, owner.states, pointers),
                                 floats(tile.view(owner.bias)));
  const std::int64_t depth = ceil_div(std::ssize(owner.entry_rows), rows);
  return codelets::reduce_cycles(rows, depth, DataType::Float, DataType::Float, workers) +
         codelets::update_cycles(rows, rule_.kind, DataType::Float, workers);
}

}  // namespace tessera::runtime::internal
