#include "tessera/runtime/internal/static_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "tessera/base/distinct.hpp"
#include "tessera/base/error.hpp"

namespace tessera::runtime::internal {
namespace {

using planner::StaticAssignment;
using Pattern = sparse::Csr<float>;

[[noreturn]] void refuse(std::int64_t group, const std::string& reason) {
  throw_invalid(
      fmt::format("the static plan of group {} {}; plan this layer again", group, reason));
}

void check_parts(const StaticSizes& sizes, const StaticAssignment& plan, std::int64_t group) {
  std::int64_t column = 0, tile = 0;
  for (const planner::StaticPart& part : plan.parts) {
    if (part.layout < 0 || part.layout >= std::ssize(plan.layouts))
      refuse(group, fmt::format("names layout {} of {}", part.layout, plan.layouts.size()));
    if (part.begin != column || part.end <= part.begin || part.end % sizes.z_grain != 0)
      refuse(group,
             fmt::format("has columns {}..{} of the batch after {}", part.begin, part.end, column));
    if (part.first_tile < tile)
      refuse(group, fmt::format("gives tile {} to two parts of the batch", part.first_tile));
    column = part.end;
    tile = part.first_tile + std::ssize(plan.layouts[std::size_t(part.layout)].tiles);
  }
  if (tile > sizes.tiles) refuse(group, fmt::format("takes {} tiles of {}", tile, sizes.tiles));
  if (column != sizes.size.z)
    refuse(group, fmt::format("has {} columns of {} of the batch", column, sizes.size.z));
}

void check_assigned(const StaticSizes& sizes, const StaticAssignment& plan, const Pattern& pattern,
                    std::int64_t group) {
  for (const planner::StaticLayout& layout : plan.layouts) {
    if (std::ssize(layout.tile_of) != pattern.blocks())
      refuse(group, fmt::format("has {} blocks and the pattern {}", layout.tile_of.size(),
                                pattern.blocks()));
    for (const std::int32_t tile : layout.tile_of)
      if (tile < 0 || tile >= std::ssize(layout.tiles))
        refuse(group, fmt::format("has a block on tile {} of {}", tile, layout.tiles.size()));
  }
  if (pattern.blocks() > 0) check_parts(sizes, plan, group);
}

void check_plan(const StaticSizes& sizes, const planner::StaticPlan& plan, const Pattern& pattern,
                std::int64_t group) {
  constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
  if (pattern.blocks() > kMostBlocks)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("group {} has {} blocks; a static layer may have {} in a group", group,
                            pattern.blocks(), kMostBlocks));
  if (plan.data_type != sizes.type)
    refuse(group, fmt::format("is for {} and the layer has {}", to_string(plan.data_type),
                              to_string(sizes.type)));
  if (pattern.rows != sizes.size.x || pattern.cols != sizes.size.y || pattern.block != sizes.block)
    refuse(group, "is for a matrix of another size or block");
  check_assigned(sizes, plan, pattern, group);
  if (plan.grad_a) check_assigned(sizes, *plan.grad_a, pattern, group);
}

// Lists the distinct columns of a tile and replaces its columns by their places in the list.
void number_columns(StaticTileBlocks& own) {
  own.columns = own.column;
  keep_distinct(own.columns);
  own.columns.shrink_to_fit();
  for (std::int32_t& column : own.column)
    column = std::int32_t(std::ranges::lower_bound(own.columns, column) - own.columns.begin());
}

using BlocksOfTiles = std::vector<std::shared_ptr<StaticTileBlocks>>;

// Returns the blocks of each tile of a layout.
BlocksOfTiles blocks_of_tiles(const planner::StaticLayout& layout, const Pattern& pattern) {
  BlocksOfTiles tiles;
  for (const planner::StaticTile& tile : layout.tiles) {
    StaticTileBlocks& own = *tiles.emplace_back(std::make_shared<StaticTileBlocks>());
    own.column.reserve(std::size_t(tile.blocks));
    own.block.reserve(std::size_t(tile.blocks));
  }
  for (std::int64_t row = 0; row < pattern.block_rows(); ++row)
    for (auto i = pattern.row_begin[std::size_t(row)]; i < pattern.row_begin[std::size_t(row) + 1];
         ++i) {
      StaticTileBlocks& own = *tiles[std::size_t(layout.tile_of[std::size_t(i)])];
      if (own.rows.empty() || own.rows.back() != row) {
        own.rows.push_back(std::int32_t(row));
        own.row_begin.push_back(std::ssize(own.block));
      }
      own.column.push_back(pattern.col[std::size_t(i)]);
      own.block.push_back(std::int32_t(i));
    }
  for (const auto& own : tiles) {
    own->row_begin.push_back(std::ssize(own->block));
    number_columns(*own);
  }
  return tiles;
}

// Adds the works of a part of the batch. Tiles without blocks have none.
void add_works(const BlocksOfTiles& tiles, StaticCut& cut) {
  const StaticBatchPart& part = cut.parts.back();
  for (std::size_t tile = 0; tile < tiles.size(); ++tile)
    if (!tiles[tile]->block.empty())
      cut.works.push_back({.tile = TileId(part.tiles.begin + std::int64_t(tile)),
                           .group = part.group,
                           .part = cut.parts.size() - 1,
                           .z = part.z,
                           .own = tiles[tile]});
}

// Adds the runs of a group's values.
void add_runs(StaticCut& cut, const StaticAssignment& plan, std::size_t first_part,
              std::size_t first_work) {
  std::vector<std::vector<std::int32_t>> work_of;  // by part and tile
  for (std::size_t p = first_part; p < cut.parts.size(); ++p)
    work_of.emplace_back(std::size_t(cut.parts[p].tiles.size()));
  for (std::size_t w = first_work; w < cut.works.size(); ++w) {
    const StaticWork& work = cut.works[w];
    const std::int64_t tile = work.tile.value - cut.parts[work.part].tiles.begin;
    work_of[work.part - first_part][std::size_t(tile)] = std::int32_t(w);
  }
  const planner::GradientRuns found = planner::gradient_runs(plan);
  const std::int64_t area = cut.sizes.block.area();
  for (const planner::GradientRun& of_blocks : found.runs) {
    StaticRun& run = cut.gradients.emplace_back();
    run.elements = of_blocks.blocks * area;
    for (std::size_t p = 0; p < work_of.size(); ++p) {
      const auto layout = std::size_t(plan.parts[p].layout);
      const auto tile = std::size_t(plan.layouts[layout].tile_of[of_blocks.first]);
      run.pieces.push_back({work_of[p][tile], found.places[layout][of_blocks.first] * area});
    }
  }
}

void add_homes(StaticCut& cut) {
  for (std::size_t r = 0; r < cut.gradients.size(); ++r)
    for (std::size_t i = 0; i < cut.gradients[r].pieces.size(); ++i) {
      const Range share = cut.gradients[r].share(i);
      if (share.size() > 0) cut.homes.push_back({cut.gradients[r].pieces[i].work, r, share, 0});
    }
  if (!cut.runs_together) std::ranges::stable_sort(cut.homes, {}, &StaticHome::work);
  cut.stored.assign(cut.works.size(), {});
  std::int64_t next = 0;
  for (StaticHome& home : cut.homes) {
    home.first = next;
    next += home.elements.size();
    Range& stored = cut.stored[std::size_t(home.work)];
    if (stored.size() == 0) stored.begin = home.first;
    stored.end = next;
  }
}

// Adds the parts and works of a group.
void add_group(const StaticAssignment& plan, const Pattern& pattern, std::int64_t group,
               StaticCut& cut) {
  std::vector<BlocksOfTiles> blocks;
  for (const planner::StaticLayout& layout : plan.layouts)
    blocks.push_back(blocks_of_tiles(layout, pattern));
  for (const planner::StaticPart& part : plan.parts) {
    const BlocksOfTiles& tiles = blocks[std::size_t(part.layout)];
    const std::int64_t tile = group * cut.sizes.tiles + part.first_tile;
    cut.parts.push_back({group, {part.begin, part.end}, {tile, tile + std::ssize(tiles)}});
    add_works(tiles, cut);
  }
}

// Calls add(group, its pattern, its plan) for every group with blocks, after the checks.
template <class Add>
StaticCut cut_groups(const StaticSizes& sizes, std::span<const sparse::CheckedCsr<float>> weights,
                     std::span<const planner::StaticPlan> plans, const Add& add) {
  StaticCut cut;
  cut.sizes = sizes;
  cut.first_value = {0};
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Pattern& pattern = *weights[g];
    check_plan(sizes, plans[g], pattern, std::int64_t(g));
    cut.first_value.push_back(cut.first_value.back() + pattern.blocks() * sizes.block.area());
    if (pattern.blocks() > 0) add(std::int64_t(g), pattern, plans[g], cut);
  }
  return cut;
}

}  // namespace

std::int64_t StaticCut::stored_values() const {
  return homes.empty() ? 0 : homes.back().first + homes.back().elements.size();
}

std::int64_t StaticCut::first_of(const StaticHome& home) const {
  const auto& pieces = gradients[home.run].pieces;
  const auto piece = std::ranges::find(pieces, home.work, &StaticPiece::work);
  return piece->first + home.elements.begin;
}

bool StaticCut::in_parts() const {
  return std::ranges::any_of(gradients, [](const StaticRun& run) { return run.pieces.size() > 1; });
}

StaticCut cut_static(const StaticSizes& sizes, std::span<const sparse::CheckedCsr<float>> weights,
                     std::span<const planner::StaticPlan> plans) {
  StaticCut result = cut_groups(sizes, weights, plans,
                                [](std::int64_t group, const Pattern& pattern,
                                   const planner::StaticPlan& plan, StaticCut& cut) {
                                  const std::size_t first_part = cut.parts.size();
                                  const std::size_t first_work = cut.works.size();
                                  add_group(plan, pattern, group, cut);
                                  add_runs(cut, plan, first_part, first_work);
                                  cut.runs_together = cut.runs_together && plan.layouts.size() == 1;
                                });
  add_homes(result);
  return result;
}

StaticCut cut_grad_a(const StaticSizes& sizes, std::span<const sparse::CheckedCsr<float>> weights,
                     std::span<const planner::StaticPlan> plans) {
  return cut_groups(
      sizes, weights, plans,
      [](std::int64_t group, const Pattern& pattern, const planner::StaticPlan& plan,
         StaticCut& cut) { add_group(plan.assignment(Pass::GradA), pattern, group, cut); });
}

namespace {

std::shared_ptr<const StaticTileBlocks> transposed(const StaticTileBlocks& own) {
  auto result = std::make_shared<StaticTileBlocks>();
  result->rows = own.columns;
  result->columns = own.rows;
  std::vector<std::int64_t>& row_begin = result->row_begin;
  row_begin.assign(own.columns.size() + 1, 0);
  for (const std::int32_t column : own.column) ++row_begin[std::size_t(column) + 1];
  std::partial_sum(row_begin.begin(), row_begin.end(), row_begin.begin());
  std::vector<std::int64_t> next = row_begin;
  result->column.resize(own.column.size());
  result->block.resize(own.column.size());
  for (std::size_t row = 0; row < own.rows.size(); ++row)
    for (auto i = own.row_begin[row]; i < own.row_begin[row + 1]; ++i) {
      const auto to = std::size_t(next[std::size_t(own.column[std::size_t(i)])]++);
      result->column[to] = std::int32_t(row);
      result->block[to] = std::int32_t(i);
    }
  return result;
}

}  // namespace

std::vector<StaticWork> transposed(std::span<const StaticWork> works) {
  std::map<const StaticTileBlocks*, std::shared_ptr<const StaticTileBlocks>> known;
  std::vector<StaticWork> result(works.begin(), works.end());
  for (StaticWork& work : result) {
    auto& turned = known[work.own.get()];
    if (turned == nullptr) turned = transposed(*work.own);
    work.own = turned;
  }
  return result;
}

std::vector<StaticRun> runs_of_rows(std::span<const StaticWork> works, std::int64_t block_rows) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int32_t>, StaticRun> runs;
  for (std::size_t w = 0; w < works.size(); ++w) {
    const StaticWork& work = works[w];
    const std::int64_t elements = block_rows * work.z.size();
    for (std::size_t row = 0; row < work.own->rows.size(); ++row) {
      StaticRun& run = runs[{work.group, work.z.begin, work.own->rows[row]}];
      run.elements = elements;
      run.pieces.push_back({std::int32_t(w), std::int64_t(row) * elements});
    }
  }
  std::vector<StaticRun> result;
  for (auto& [key, run] : runs) result.push_back(std::move(run));
  return result;
}

}  // namespace tessera::runtime::internal
