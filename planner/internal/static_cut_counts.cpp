#include "tessera/planner/internal/static_cut_counts.hpp"

#include <utility>

namespace tessera::planner::internal {

StaticRuns runs_of(const BandedRows& rows, std::int64_t tiles, RunKind kind) {
  constexpr double kLightRow = 0.5;  // in blocks
  switch (kind) {
    case RunKind::Even:
      return even_runs(rows, tiles);
    case RunKind::WholeRows:
      return whole_row_runs(rows, tiles, {});
    case RunKind::LightRows:
      return whole_row_runs(rows, tiles, {.row_weight = kLightRow});
    case RunKind::UncutRows:
      return whole_row_runs(rows, tiles, {.cut_long = false});
  }
  return {};
}

namespace {

std::int64_t entries_of(const CutLoads& loads) {
  return std::ssize(loads.load.rows) + std::ssize(loads.load.tiles) +
         (loads.transposed ? std::ssize(loads.transposed->rows) : 0);
}

}  // namespace

CutCounts::CutCounts(const BlockPattern& pattern, std::int64_t most_kept)
    : pattern_(pattern), counts_(count_blocks(pattern)), most_kept_(most_kept) {}

const BandedRows& CutCounts::banded(std::int64_t bands) {
  const auto [it, is_new] = banded_.try_emplace(bands);
  if (is_new) it->second = banded_rows(pattern_, bands_of(counts_, bands));
  return it->second;
}

CutLoads CutCounts::counted(const BlockCut& cut, bool with_transposed) {
  const BandedRows& rows = banded(cut.bands);
  const StaticRuns runs = runs_of(rows, cut.tiles, cut.runs);
  CutLoads result;
  if (runs.empty()) return result;
  std::vector<std::int32_t> tile_of;
  result.load = deal_runs(pattern_, rows, runs, with_transposed ? &tile_of : nullptr);
  if (!with_transposed) return result;
  if (!by_column_) by_column_ = blocks_by_column(pattern_);
  result.transposed = transposed_load(result.load, tile_of, *by_column_);
  return result;
}

const CutLoads* CutCounts::loads(const BlockCut& cut, bool with_transposed) {
  const auto usable = [](const CutLoads& loads) {
    return loads.load.tiles.empty() ? nullptr : &loads;
  };
  const auto found = kept_.find(cut);
  if (found != kept_.end() && (found->second.transposed || !with_transposed))
    return usable(found->second);
  CutLoads loads = counted(cut, with_transposed);
  const std::int64_t replaced = found != kept_.end() ? entries_of(found->second) : 0;
  const std::int64_t entries = entries_of(loads) - replaced;
  if (kept_entries_ + entries > most_kept_) {
    last_ = std::move(loads);
    return usable(last_);
  }
  kept_entries_ += entries;
  return usable(kept_[cut] = std::move(loads));
}

}  // namespace tessera::planner::internal
