#include "tessera/runtime/internal/static_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::runtime::internal {
namespace {

using Pattern = sparse::Csr<float>;

[[noreturn]] void refuse(std::int64_t group, const std::string& reason) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("the static plan of group {} {}; plan this layer again", group, reason));
}

void check_parts(const StaticSizes& sizes, const planner::StaticPlan& plan, std::int64_t group) {
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

void check_plan(const StaticSizes& sizes, const planner::StaticPlan& plan, const Pattern& pattern,
                std::int64_t group) {
  if (plan.data_type != sizes.type)
    refuse(group, fmt::format("is for {} and the layer has {}", to_string(plan.data_type),
                              to_string(sizes.type)));
  if (pattern.rows != sizes.size.x || pattern.cols != sizes.size.y || pattern.block != sizes.block)
    refuse(group, "is for a matrix of another size or block");
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

// Lists the distinct columns of a work and replaces its columns by their places in the list.
void number_columns(StaticWork& work) {
  work.columns = work.column;
  std::ranges::sort(work.columns);
  const auto repeated = std::ranges::unique(work.columns);
  work.columns.erase(repeated.begin(), repeated.end());
  for (std::int32_t& column : work.column)
    column = std::int32_t(std::ranges::lower_bound(work.columns, column) - work.columns.begin());
}

// Returns the works of the tiles of one part of the batch. Tiles without blocks have none.
std::vector<StaticWork> works_of_part(const planner::StaticLayout& layout,
                                      const StaticBatchPart& part, const Pattern& pattern,
                                      std::size_t part_index) {
  std::vector<StaticWork> works(layout.tiles.size());
  for (std::size_t tile = 0; tile < works.size(); ++tile) {
    works[tile].tile = TileId(part.tiles.begin + std::int64_t(tile));
    works[tile].group = part.group;
    works[tile].part = part_index;
    works[tile].z = part.z;
  }
  for (std::int64_t row = 0; row < pattern.block_rows(); ++row)
    for (auto i = pattern.row_begin[std::size_t(row)]; i < pattern.row_begin[std::size_t(row) + 1];
         ++i) {
      StaticWork& work = works[std::size_t(layout.tile_of[std::size_t(i)])];
      if (work.rows.empty() || work.rows.back() != row) {
        work.rows.push_back(std::int32_t(row));
        work.row_begin.push_back(std::ssize(work.block));
      }
      work.column.push_back(pattern.col[std::size_t(i)]);
      work.block.push_back(i);
    }
  std::erase_if(works, [](const StaticWork& work) { return work.block.empty(); });
  for (StaticWork& work : works) {
    work.row_begin.push_back(std::ssize(work.block));
    number_columns(work);
  }
  return works;
}

// The place of every block of a group in each part of the batch: a piece of one block.
using PlacesOfBlocks = std::vector<std::vector<StaticPiece>>;

// Adds the runs of a group's values: neighbouring blocks of the first part's tiles that are
// neighbours on the tiles of all other parts as well.
void add_runs(const StaticCut& cut, Range works, const PlacesOfBlocks& places,
              std::vector<StaticRun>& runs) {
  const std::int64_t area = cut.sizes.block.area();
  const Range z = cut.works[std::size_t(works.begin)].z;
  for (auto w = works.begin; w < works.end; ++w) {
    const StaticWork& work = cut.works[std::size_t(w)];
    if (work.z.begin != z.begin) break;
    const std::vector<StaticPiece>* before = nullptr;
    for (const std::int64_t block : work.block) {
      const std::vector<StaticPiece>& here = places[std::size_t(block)];
      const bool goes_on =
          before != nullptr &&
          std::ranges::equal(*before, here, [&](const StaticPiece& a, const StaticPiece& b) {
            return a.work == b.work && a.first + area == b.first;
          });
      if (!goes_on) runs.emplace_back().pieces = here;
      runs.back().elements += area;
      before = &here;
    }
  }
}

void add_homes(StaticCut& cut) {
  for (std::size_t r = 0; r < cut.gradients.size(); ++r)
    for (std::size_t i = 0; i < cut.gradients[r].pieces.size(); ++i) {
      const Range share = cut.gradients[r].share(i);
      if (share.size() > 0) cut.homes.push_back({cut.gradients[r].pieces[i].work, r, share, 0});
    }
  std::ranges::stable_sort(cut.homes, {}, &StaticHome::work);
  cut.first_stored.assign(cut.works.size() + 1, 0);
  std::int64_t next = 0;
  for (StaticHome& home : cut.homes) {
    home.first = next;
    next += home.elements.size();
    cut.first_stored[std::size_t(home.work) + 1] = next;
  }
  for (std::size_t w = 1; w < cut.first_stored.size(); ++w)
    cut.first_stored[w] = std::max(cut.first_stored[w], cut.first_stored[w - 1]);
}

}  // namespace

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
  StaticCut cut;
  cut.sizes = sizes;
  cut.first_value = {0};
  const std::int64_t area = sizes.block.area();
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const auto group = std::int64_t(g);
    const Pattern& pattern = *weights[g];
    check_plan(sizes, plans[g], pattern, group);
    cut.first_value.push_back(cut.first_value.back() + pattern.blocks() * area);
    if (pattern.blocks() == 0) continue;
    const std::int64_t first = std::ssize(cut.works);
    PlacesOfBlocks places(std::size_t(pattern.blocks()));
    for (const planner::StaticPart& part : plans[g].parts) {
      const planner::StaticLayout& layout = plans[g].layouts[std::size_t(part.layout)];
      const std::int64_t tile = group * sizes.tiles + part.first_tile;
      cut.parts.push_back({group, {part.begin, part.end}, {tile, tile + std::ssize(layout.tiles)}});
      for (StaticWork& work :
           works_of_part(layout, cut.parts.back(), pattern, cut.parts.size() - 1)) {
        for (std::size_t i = 0; i < work.block.size(); ++i)
          places[std::size_t(work.block[i])].push_back(
              {std::int32_t(cut.works.size()), std::int64_t(i) * area});
        cut.works.push_back(std::move(work));
      }
    }
    add_runs(cut, {first, std::ssize(cut.works)}, places, cut.gradients);
  }
  add_homes(cut);
  return cut;
}

StaticWork transposed(const StaticWork& work) {
  StaticWork result{.tile = work.tile,
                    .group = work.group,
                    .part = work.part,
                    .z = work.z,
                    .rows = work.columns,
                    .columns = work.rows,
                    .row_begin = std::vector<std::int64_t>(work.columns.size() + 1, 0)};
  for (const std::int32_t column : work.column) ++result.row_begin[std::size_t(column) + 1];
  std::partial_sum(result.row_begin.begin(), result.row_begin.end(), result.row_begin.begin());
  std::vector<std::int64_t> next = result.row_begin;
  result.column.resize(work.column.size());
  result.block.resize(work.column.size());
  for (std::size_t row = 0; row < work.rows.size(); ++row)
    for (auto i = work.row_begin[row]; i < work.row_begin[row + 1]; ++i) {
      const auto to = std::size_t(next[std::size_t(work.column[std::size_t(i)])]++);
      result.column[to] = std::int32_t(row);
      result.block[to] = i;
    }
  return result;
}

std::vector<StaticRun> runs_of_rows(std::span<const StaticWork> works, std::int64_t block_rows) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int32_t>, StaticRun> runs;
  for (std::size_t w = 0; w < works.size(); ++w) {
    const StaticWork& work = works[w];
    const std::int64_t elements = block_rows * work.z.size();
    for (std::size_t row = 0; row < work.rows.size(); ++row) {
      StaticRun& run = runs[{work.group, work.z.begin, work.rows[row]}];
      run.elements = elements;
      run.pieces.push_back({std::int32_t(w), std::int64_t(row) * elements});
    }
  }
  std::vector<StaticRun> result;
  for (auto& [key, run] : runs) result.push_back(std::move(run));
  return result;
}

}  // namespace tessera::runtime::internal
