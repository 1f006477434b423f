#include "tessera/runtime/internal/network_biases.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

NetworkBiases::NetworkBiases(std::span<const std::unique_ptr<NetworkLayerState>> layers,
                             const codelets::Optimiser& optimiser, TileProgram& program)
    : optimiser_(optimiser), program_(program) {
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (layers[l]->layer.bias) layers_.push_back({layers[l].get(), l, {}, {}, {}, {}, {}});
}

NetworkBiases::Layer* NetworkBiases::find(std::size_t layer) {
  const auto found = std::ranges::find(layers_, layer, &Layer::number);
  return found == layers_.end() ? nullptr : &*found;
}

void NetworkBiases::declare_resident(std::size_t number) {
  Layer* const layer = find(number);
  if (layer == nullptr) return;
  const std::int64_t rows = layer->state->problem.size.x;
  const std::int64_t parts = std::min(rows, program_.engine().machine().tiles);
  layer->bias.rows = rows;
  layer->bias.cols = 1;
  for (std::int64_t part = 0; part < parts; ++part)
    if (const Range own = share_of(rows, 1, parts, part); own.size() > 0)
      layer->bias.shares.push_back({{own.begin, 0, 1, {0, own.size()}}, TileId(part), {}});
  while (owner_tiles_.size() < layer->bias.shares.size())
    owner_tiles_.emplace_back(std::ssize(owner_tiles_));
  layer->states.assign(layer->state->state_buffers.size(), layer->bias);
  add_slots(program_, layer->bias, "bias", kFloatBytes, /*resident=*/true);
  Uses uses{{}, {layer->bias.buffer}};
  for (TensorHome& state : layer->states) {
    add_slots(program_, state, &state == layer->states.data() ? "bias state" : "second bias state",
              kFloatBytes, /*resident=*/true);
    uses.writes.push_back(state.buffer);
  }
  program_.step(NodeKind::Load, {}, uses, [this, layer] { load(*layer); });
}

void NetworkBiases::declare() {
  Uses sums, changed, sent;
  std::vector<device::Move> brought, returned;
  for (Layer& layer : layers_) {
    declare_sums(layer, brought);
    sums.add({{layer.state->row_sums.buffer}, {layer.sums.buffer}});
    changed.add({{layer.sums.buffer}, {layer.bias.buffer}});
    for (const TensorHome& state : layer.states) changed.writes.push_back(state.buffer);
    sent.add({{layer.bias.buffer}, {layer.state->bias.buffer}});
    const auto moves = moves_between(layer.bias, layer.state->bias, kFloatBytes);
    returned.insert(returned.end(), moves.begin(), moves.end());
  }
  program_.exchange(Phase::Update, sums, {}, std::move(brought));
  program_.compute(Phase::Update, changed, owner_tiles_,
                   [this](const device::Tile& tile) { return update(tile); });
  program_.exchange(Phase::Update, sent, {}, std::move(returned));
}

void NetworkBiases::declare_collect() {
  for (const Layer& layer : layers_) {
    Uses uses{{layer.bias.buffer}, {}};
    for (const TensorHome& state : layer.states) uses.reads.push_back(state.buffer);
    program_.step(NodeKind::Collect, {}, uses, [this, &layer] { collect(layer); });
  }
}

// The sums of a row arrive in the order of the shares.
void NetworkBiases::declare_sums(Layer& layer, std::vector<device::Move>& moves) {
  const TensorHome& sent = layer.state->row_sums;
  layer.first_sums.resize(std::size_t(sent.rows + 1));
  for (const HomeShare& share : sent.shares)
    sent.for_each_row(share,
                      [&](std::int64_t row, Range) { ++layer.first_sums[std::size_t(row + 1)]; });
  std::partial_sum(layer.first_sums.begin(), layer.first_sums.end(), layer.first_sums.begin());
  layer.sums = layer.bias;
  layer.sums.rows = layer.first_sums.back();
  for (HomeShare& share : layer.sums.shares) {
    const std::int64_t first = layer.first_sums[std::size_t(share.first_row)];
    const std::int64_t end = layer.first_sums[std::size_t(share.first_row + share.elements.size())];
    share.first_row = first;
    share.elements = {0, end - first};
  }
  add_slots(program_, layer.sums, "gradients of biases", kFloatBytes);
  layer.gradient.resize(layer.bias.shares.size());
  std::vector<std::int64_t> next = layer.first_sums;
  const std::int64_t rows_of_owner = layer.bias.shares.front().elements.size();
  for (const HomeShare& share : sent.shares)
    sent.for_each_row(share, [&](std::int64_t row, Range) {
      const HomeShare& to = layer.sums.shares[std::size_t(row / rows_of_owner)];
      moves.push_back({share.slot, to.slot, (row - share.first_row) * kFloatBytes,
                       (next[std::size_t(row)]++ - to.first_row) * kFloatBytes, kFloatBytes});
    });
}

void NetworkBiases::load(const Layer& layer) {
  const auto put = [&](const TensorHome& home, std::span<const float> of_all) {
    load_matrix(program_.engine(), home, DataType::Float, column_of(of_all));
  };
  put(layer.bias, layer.state->parameters.bias);
  for (std::size_t s = 0; s < layer.states.size(); ++s)
    put(layer.states[s], layer.state->parameters.bias_states[s]);
}

void NetworkBiases::collect(const Layer& layer) {
  const auto take = [&](const TensorHome& home, std::span<float> to) {
    collect_matrix(program_.engine(), home, DataType::Float, column_of(to));
  };
  take(layer.bias, layer.state->after.bias);
  for (std::size_t s = 0; s < layer.states.size(); ++s)
    take(layer.states[s], layer.state->after.bias_states[s]);
}

// A tile owns rows of every layer that has as many owners as it has tiles before it.
Cycles NetworkBiases::update(const device::Tile& tile) {
  const auto t = std::size_t(tile.id().value);
  Cycles cycles;
  for (Layer& layer : layers_)
    if (t < layer.bias.shares.size()) cycles += update_rows(layer, t, tile);
  return cycles;
}

Cycles NetworkBiases::update_rows(Layer& layer, std::size_t owner, const device::Tile& tile) const {
  const HomeShare &own = layer.bias.shares[owner], &own_sums = layer.sums.shares[owner];
  const std::int64_t rows = own.elements.size(), workers = program_.engine().machine().workers;
  const float* const sums = floats(tile.view(own_sums.slot));
  std::vector<float>& gradient = layer.gradient[owner];
  gradient.assign(std::size_t(rows), 0);
  for (std::size_t row = 0; row < gradient.size(); ++row) {
    const std::int64_t* const first = &layer.first_sums[std::size_t(own.first_row) + row];
    const std::int64_t count = first[1] - first[0];
    codelets::sum_rows<float>({0, count, std::max<std::int64_t>(count, 1)},
                              sums + first[0] - own_sums.first_row, &gradient[row]);
  }
  std::array<float*, codelets::kMostStates> states{};
  for (std::size_t s = 0; s < layer.states.size(); ++s)
    states[s] = floats(tile.view(layer.states[s].shares[owner].slot));
  const codelets::Optimiser optimiser = codelets::without_decay(optimiser_);
  codelets::update_values<float>(optimiser, layer.state->parameters.steps + 1, gradient,
                                 {states.data(), layer.states.size()}, floats(tile.view(own.slot)));
  return codelets::sum_rows_cycles(own_sums.elements.size(), rows, DataType::Float, workers) +
         codelets::update_cycles(rows, optimiser, DataType::Float, workers);
}

}  // namespace tessera::runtime::internal
