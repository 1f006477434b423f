#include "tessera/runtime/internal/network_biases.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotKind;

constexpr std::int64_t kFloatBytes = sizeof(float);

// Calls visit(row, end, owner) for each part of the share's rows that one owner has; the rows after
// the last one of the layer are padding. An owner has `rows_of_owner` rows.
template <class Visit>
void for_each_owned_part(const HomeShare& share, std::int64_t all_rows, std::int64_t rows_of_owner,
                         Visit&& visit) {
  if (share.elements.size() == 0) return;
  const std::int64_t end = std::min(all_rows, share.row_of(share.elements.end - 1) + 1);
  for (std::int64_t row = share.row_of(share.elements.begin); row < end;) {
    const std::int64_t owner = row / rows_of_owner;
    const std::int64_t part_end = std::min(end, (owner + 1) * rows_of_owner);
    visit(row, part_end, std::size_t(owner));
    row = part_end;
  }
}

}  // namespace

NetworkBiases::NetworkBiases(std::span<const std::unique_ptr<NetworkLayerState>> layers,
                             const codelets::Optimiser& optimiser, TileProgram& program)
    : optimiser_(optimiser), program_(program) {
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (layers[l]->layer.bias) layers_.push_back({layers[l].get(), l, {}, {}, {}, {}});
}

NetworkBiases::Layer* NetworkBiases::find(std::size_t layer) {
  const auto found = std::ranges::find(layers_, layer, &Layer::number);
  return found == layers_.end() ? nullptr : &*found;
}

void NetworkBiases::declare_resident(std::size_t number) {
  Layer* const layer = find(number);
  if (layer == nullptr) return;
  find_owners(*layer);
  const auto add = [&](std::string name) {
    return program_.add_buffer(std::move(name), /*resident=*/true);
  };
  layer->bias = add("bias");
  Uses uses{{}, {layer->bias}};
  for (std::size_t s = 0; s < layer->state->state_buffers.size(); ++s) {
    layer->states.push_back(add(s == 0 ? "bias state" : "second bias state"));
    uses.writes.push_back(layer->states.back());
  }
  for (Owner& owner : layer->owners) {
    owner.bias =
        program_.add_slot(layer->bias, owner.tile, owner.rows.size(), kFloatBytes, SlotKind::Owned);
    for (const BufferId buffer : layer->states)
      owner.states.push_back(
          program_.add_slot(buffer, owner.tile, owner.rows.size(), kFloatBytes, SlotKind::Owned));
  }
  program_.step(NodeKind::Load, {}, uses, [this, layer] { load(*layer); });
}

void NetworkBiases::declare() {
  Uses sums, changed, sent;
  std::vector<device::Move> brought, returned;
  for (Layer& layer : layers_) {
    layer.sums = program_.add_buffer("gradients of biases");
    for (Owner& owner : layer.owners)
      owner.sums = program_.add_slot(layer.sums, owner.tile, owner.first_sums.back(), kFloatBytes,
                                     SlotKind::Owned);
    sums.reads.push_back(layer.state->row_sums_buffer);
    sums.writes.push_back(layer.sums);
    changed.reads.push_back(layer.sums);
    changed.writes.push_back(layer.bias);
    changed.writes.insert(changed.writes.end(), layer.states.begin(), layer.states.end());
    sent.reads.push_back(layer.bias);
    sent.writes.push_back(layer.state->bias_buffer);
    add_moves_of_sums(layer, brought);
    add_moves_of_bias(layer, returned);
  }
  program_.exchange(Phase::Update, sums, {}, std::move(brought));
  program_.compute(Phase::Update, changed, owner_tiles_,
                   [this](const device::Tile& tile) { return update(tile); });
  program_.exchange(Phase::Update, sent, {}, std::move(returned));
}

void NetworkBiases::declare_collect() {
  for (const Layer& layer : layers_) {
    Uses uses{{layer.bias}, {}};
    uses.reads.insert(uses.reads.end(), layer.states.begin(), layer.states.end());
    program_.step(NodeKind::Collect, {}, uses, [this, &layer] { collect(layer); });
  }
}

void NetworkBiases::find_owners(Layer& layer) {
  const std::int64_t rows = layer.rows();
  const std::int64_t parts = std::min(rows, program_.engine().machine().tiles);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = share_of(rows, 1, parts, part);
    if (own.size() == 0) continue;
    layer.owners.push_back({.tile = TileId(part), .rows = own});
    layer.owners.back().first_sums.resize(std::size_t(own.size() + 1));
  }
  for (const HomeShare& share : layer.state->gradient().shares)
    for_each_owned_part(share, rows, layer.rows_of_owner(),
                        [&](std::int64_t row, std::int64_t end, std::size_t at) {
                          Owner& owner = layer.owners[at];
                          for (; row < end; ++row)
                            ++owner.first_sums[std::size_t(row - owner.rows.begin + 1)];
                        });
  for (Owner& owner : layer.owners)
    std::partial_sum(owner.first_sums.begin(), owner.first_sums.end(), owner.first_sums.begin());
  while (owner_tiles_.size() < layer.owners.size())
    owner_tiles_.emplace_back(std::ssize(owner_tiles_));
}

// The sums of a row arrive in the order of the shares.
void NetworkBiases::add_moves_of_sums(const Layer& layer, std::vector<device::Move>& moves) const {
  std::vector<std::int64_t> arrived(std::size_t(layer.rows()));
  const std::vector<HomeShare>& shares = layer.state->gradient().shares;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t first = shares[i].row_of(shares[i].elements.begin);
    for_each_owned_part(
        shares[i], layer.rows(), layer.rows_of_owner(),
        [&](std::int64_t row, std::int64_t end, std::size_t at) {
          const Owner& owner = layer.owners[at];
          for (; row < end; ++row) {
            const std::int64_t to =
                owner.first_sums[std::size_t(row - owner.rows.begin)] + arrived[std::size_t(row)]++;
            moves.push_back({layer.state->row_sums[i], owner.sums, (row - first) * kFloatBytes,
                             to * kFloatBytes, kFloatBytes});
          }
        });
  }
}

void NetworkBiases::add_moves_of_bias(const Layer& layer, std::vector<device::Move>& moves) const {
  const std::vector<HomeShare>& shares = layer.state->out.shares;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t first = shares[i].row_of(shares[i].elements.begin);
    for_each_owned_part(
        shares[i], layer.rows(), layer.rows_of_owner(),
        [&](std::int64_t row, std::int64_t end, std::size_t at) {
          const Owner& owner = layer.owners[at];
          moves.push_back({owner.bias, layer.state->bias[i], (row - owner.rows.begin) * kFloatBytes,
                           (row - first) * kFloatBytes, (end - row) * kFloatBytes});
        });
  }
}

void NetworkBiases::load(const Layer& layer) {
  for (const Owner& owner : layer.owners) {
    const auto rows = [&](const std::vector<float>& of_all) {
      return rows_at(of_all.data() + owner.rows.begin, owner.rows.size(), kFloatBytes);
    };
    program_.engine().load(owner.bias, rows(layer.state->parameters.bias));
    for (std::size_t s = 0; s < owner.states.size(); ++s)
      program_.engine().load(owner.states[s], rows(layer.state->parameters.bias_states[s]));
  }
}

void NetworkBiases::collect(const Layer& layer) {
  for (const Owner& owner : layer.owners) {
    const auto take = [&](device::SlotId slot, std::vector<float>& to) {
      std::copy_n(floats(program_.engine().view(slot)), owner.rows.size(),
                  to.begin() + owner.rows.begin);
    };
    take(owner.bias, layer.state->after.bias);
    for (std::size_t s = 0; s < owner.states.size(); ++s)
      take(owner.states[s], layer.state->after.bias_states[s]);
  }
}

// A tile owns rows of every layer that has as many owners as it has tiles before it.
Cycles NetworkBiases::update(const device::Tile& tile) {
  const auto t = std::size_t(tile.id().value);
  Cycles cycles;
  for (Layer& layer : layers_)
    if (t < layer.owners.size()) cycles += update_rows(layer, layer.owners[t], tile);
  return cycles;
}

Cycles NetworkBiases::update_rows(const Layer& layer, Owner& owner,
                                  const device::Tile& tile) const {
  const std::int64_t rows = owner.rows.size(), workers = program_.engine().machine().workers;
  const float* const sums = floats(tile.view(owner.sums));
  std::vector<float>& gradient = owner.gradient;
  gradient.assign(std::size_t(rows), 0);
  for (std::size_t row = 0; row < gradient.size(); ++row) {
    const std::int64_t begin = owner.first_sums[row], count = owner.first_sums[row + 1] - begin;
    codelets::sum_rows<float>({0, count, std::max<std::int64_t>(count, 1)}, sums + begin,
                              &gradient[row]);
  }
  std::array<float*, codelets::kMostStates> states{};
  for (std::size_t s = 0; s < owner.states.size(); ++s)
    states[s] = floats(tile.view(owner.states[s]));
  const codelets::Optimiser optimiser = codelets::without_decay(optimiser_);
  codelets::update_values<float>(optimiser, layer.state->parameters.steps + 1, gradient,
                                 {states.data(), owner.states.size()},
                                 floats(tile.view(owner.bias)));
  return codelets::sum_rows_cycles(owner.first_sums.back(), rows, DataType::Float, workers) +
         codelets::update_cycles(rows, optimiser, DataType::Float, workers);
}

}  // namespace tessera::runtime::internal
