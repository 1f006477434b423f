#include "tessera/report/tile_report.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/json/value.hpp"

namespace tessera::report {

using device::StepKind;

Imbalance imbalance(const device::Ledger& ledger) {
  Imbalance result;
  const auto& steps = ledger.steps;
  const auto longest = std::max_element(
      steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.cycles < b.cycles; });
  if (longest == steps.end()) return result;
  result.longest_step = longest - steps.begin();
  result.of_longest = longest->imbalance();
  double slowest = 0, mean = 0;
  for (const device::StepRecord& step : steps) {
    if (step.kind != StepKind::Compute || step.tiles == 0) continue;
    slowest += double(step.cycles.value);
    mean += double(step.tile_sum.value) / double(step.tiles);
  }
  if (mean > 0) result.of_compute = slowest / mean;
  return result;
}

TileReport tile_report(const device::Ledger& ledger, const device::TileLedger& kept,
                       device::MemoryUse memory, const runtime::Program& program) {
  TESSERA_ASSERT(kept.steps.size() == ledger.steps.size());
  const std::size_t tiles = memory.tiles.size();
  TileReport report;
  report.compute.resize(tiles), report.exchange.resize(tiles);
  report.sent.resize(tiles), report.received.resize(tiles);
  for (std::size_t i = 0; i < kept.steps.size(); ++i) {
    const StepKind kind = ledger.steps[i].kind;
    for (std::size_t tile = 0; tile < kept.steps[i].size(); ++tile) {
      const device::TileFigures& did = kept.steps[i][tile];
      if (kind == StepKind::Compute) report.compute[tile] += did.cycles;
      if (kind == StepKind::Exchange) report.exchange[tile] += did.cycles;
      report.sent[tile] += did.sent;
      report.received[tile] += did.received;
    }
  }
  report.memory = std::move(memory);
  report.buffers = program.buffers;
  report.liveness = liveness(program);
  return report;
}

std::string tiles_json(std::span<const partitioner::Buckets* const> groups, bool is_transposed) {
  const partitioner::TileGrid& grid = groups.front()->grid;
  const TileMap map({std::ssize(groups), grid.splits.x, grid.splits.y, grid.splits.z},
                    TileOrder::Yzx);
  json::Value tiles = json::List();
  for (const TileId tile : map.all()) {
    const Cell cell = map.cell(tile);
    const auto first = groups[std::size_t(cell.g)]->source.begin() +
                       grid.bucket_index(cell.x, cell.y, cell.z) * grid.blocks;
    const std::int64_t held =
        std::count_if(first, first + grid.blocks, [](std::int32_t block) { return block >= 0; });
    tiles.push_back({{"tile", tile.value},
                     {"g", cell.g},
                     {"x", is_transposed ? cell.y : cell.x},
                     {"y", is_transposed ? cell.x : cell.y},
                     {"z", cell.z},
                     {"values", held * grid.block.area()},
                     {"fill", double(held) / double(std::max<std::int64_t>(grid.blocks, 1))}});
  }
  return tiles.dump();
}

}  // namespace tessera::report
