#include "tessera/runtime/internal/rehome_tables.hpp"

#include <algorithm>

#include "tessera/base/distinct.hpp"
#include "tessera/base/error.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {
namespace {

TileMap map_of(const partitioner::TileGrid& grid, std::int64_t groups) {
  Dims splits = grid.splits;
  splits.g = groups;
  return {splits, TileOrder::Yzx};
}

}  // namespace

MetCells met_cells(const partitioner::TileGrid& from, const partitioner::TileGrid& to, Cell c) {
  const planner::CutSide x{from.size.x, from.block.rows, from.splits.x};
  const planner::CutSide y{from.size.y, from.block.cols, from.splits.y};
  return {x.meeting(to.y_range(c.y)), y.meeting(to.x_range(c.x))};
}

RehomeTables::RehomeTables(const partitioner::TileGrid& from, const partitioner::TileGrid& to,
                           std::int64_t groups)
    : from_(from),
      to_(to),
      from_map_(map_of(from, groups)),
      to_map_(map_of(to, groups)),
      from_values_(from.blocks * from.block.area()),
      to_values_(to.blocks * to.block.area()),
      entries_(std::size_t(groups * to.buckets() * to_values_), kNone),
      distances_(std::size_t(groups)) {
  while (stride_ * stride_ < ring()) ++stride_;
  for (std::int64_t x = 0; x < to.splits.x; ++x)
    for (std::int64_t y = 0; y < to.splits.y; ++y) {
      met_.push_back(met_cells(from, to, {x, y, 0, 0}));
      reach_ = std::max(reach_, met_.back().count() * from.splits.z * from_values_);
    }
  if (reach_ + ring() * from_values_ >= std::int64_t(kNone))
    throw Error(ErrorCode::LimitExceeded,
                "a layout of GradA's own: a tile meets more values than a table of 32 bits can "
                "name; plan with perPassPlans false");
}

std::span<const std::uint32_t> RehomeTables::of_tile(TileId tile) const {
  const std::int64_t bucket = bucket_of(to_, to_map_.cell(tile));
  return std::span(entries_).subspan(std::size_t(bucket * to_values_), std::size_t(to_values_));
}

// Uses far moves as long as no wanted distance is skipped, and near moves for the rest.
void RehomeTables::find_moves() {
  std::vector<std::int64_t> wanted;
  for (const auto& distances : distances_)
    wanted.insert(wanted.end(), distances.begin(), distances.end());
  keep_distinct(wanted);
  moves_.clear();
  std::int64_t at = 0;  // a bucket at home needs no move
  for (const std::int64_t distance : wanted)
    while (at < distance) {
      const bool far = distance - at >= stride_;
      at += far ? stride_ : 1;
      moves_.push_back({far, at, at == distance});
    }
}

std::uint32_t RehomeTables::entry(std::int64_t from, const MetCells& met, TileId tile,
                                  std::int64_t group, std::vector<std::int64_t>& distances) const {
  const std::int64_t bucket = from / from_values_, inside = from % from_values_;
  const std::int64_t z = bucket % from_.splits.z, cell = bucket / from_.splits.z;
  const std::int64_t x = cell / from_.splits.y, y = cell % from_.splits.y;
  if (met.holds(x, y))
    return static_cast<std::uint32_t>((met.index(x, y) * from_.splits.z + z) * from_values_ +
                                      inside);
  const std::int64_t source = from_map_.tile({x, y, z, group}).value;
  const std::int64_t distance = (tile.value - source + ring()) % ring();
  if (distances.empty() || distances.back() != distance) distances.push_back(distance);
  return static_cast<std::uint32_t>(reach_ + distance * from_values_ + inside);
}

void RehomeTables::set_pattern(std::int64_t group, std::span<const std::int64_t> from,
                               std::span<const std::int64_t> to) {
  TESSERA_ASSERT(from.size() == to.size());
  const std::int64_t all = to_.buckets() * to_values_;
  const std::span<std::uint32_t> entries =
      std::span(entries_).subspan(std::size_t(group * all), std::size_t(all));
  std::fill(entries.begin(), entries.end(), kNone);
  std::vector<std::int64_t> distances;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t bucket = to[i] / to_values_;
    const std::int64_t z = bucket % to_.splits.z, cell = bucket / to_.splits.z;
    const TileId tile = to_map_.tile({cell / to_.splits.y, cell % to_.splits.y, z, group});
    entries[std::size_t(to[i])] = entry(from[i], met_[std::size_t(cell)], tile, group, distances);
  }
  keep_distinct(distances);
  distances_[std::size_t(group)] = std::move(distances);
  find_moves();
}

}  // namespace tessera::runtime::internal
