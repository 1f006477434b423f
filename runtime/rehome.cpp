#include "tessera/runtime/internal/rehome.hpp"

#include <algorithm>

#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/tile_map.hpp"

namespace tessera::runtime::internal {
namespace {

constexpr const char* kPhase = "re-home values";

// Values stored on each tile.
std::vector<std::int64_t> values_of_tiles(std::span<const partitioner::Buckets> groups) {
  const partitioner::TileGrid& grid = groups.front().grid;
  Dims splits = grid.splits;
  splits.g = std::ssize(groups);
  const TileMap map(splits, TileOrder::Yzx);
  std::vector<std::int64_t> values;
  for (const TileId tile : map.all()) {
    const Cell c = map.cell(tile);
    const auto& source = groups[std::size_t(c.g)].source;
    const auto first = source.begin() + grid.bucket_index(c.x, c.y, c.z) * grid.blocks;
    const auto stored =
        std::count_if(first, first + grid.blocks, [](std::int64_t at) { return at >= 0; });
    values.push_back(stored * grid.block.area());
  }
  return values;
}

// A step of every tile; `cycles` of a tile by its values.
template <class CyclesOf>
device::StepRecord step_of(std::span<const std::int64_t> values, CyclesOf&& cycles) {
  device::StepRecord step;
  step.phase = kPhase;
  step.tiles = std::ssize(values);
  for (std::size_t tile = 0; tile < values.size(); ++tile) {
    const Cycles here = cycles(values[tile]);
    step.tile_sum += here;
    if (here <= step.cycles) continue;
    step.cycles = here;
    step.critical_tile = TileId(static_cast<std::int32_t>(tile));
  }
  return step;
}

}  // namespace

std::vector<device::StepRecord> rehome_steps(std::span<const partitioner::Buckets> from,
                                             std::span<const partitioner::Buckets> to,
                                             const device::Machine& machine) {
  const std::int64_t bytes = bytes_of(from.front().grid.data_type);
  const auto out = values_of_tiles(from), in = values_of_tiles(to);
  const auto pack = [&](std::int64_t values) { return planner::pack_cycles(values, machine); };
  const codelets::ExchangeWidth width{machine.exchange_bytes_per_cycle, 1};
  device::StepRecord packing = step_of(out, pack), placing = step_of(in, pack);
  packing.overhead = placing.overhead = machine.launch;
  const Dims from_parts = from.front().grid.splits, to_parts = to.front().grid.splits;
  device::StepRecord exchange = step_of(in, [&](std::int64_t values) {
    return codelets::exchange_cycles(values * bytes, width) +
           planner::rehome_senders(from_parts, to_parts, values) * machine.receive_start;
  });
  exchange.kind = device::StepKind::Exchange;
  exchange.overhead = machine.sync;
  for (const std::int64_t values : in) exchange.moved += Bytes(values * bytes);
  return {packing, exchange, placing};
}

}  // namespace tessera::runtime::internal
