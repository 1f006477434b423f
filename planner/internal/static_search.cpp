#include "tessera/planner/internal/static_search.hpp"

#include <algorithm>
#include <limits>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/static_load.hpp"

namespace tessera::planner::internal {
namespace {

// The bands of every number of bands, made once for all parts.
std::vector<StaticBands> all_bands(const StaticCase& c) {
  std::vector<StaticBands> bands;
  for (std::int64_t asked = 1; asked <= most_bands(c); ++asked)
    bands.push_back(bands_of(c.counts, asked));
  return bands;
}

// Parts run side by side, so the slowest and the largest one count.
std::optional<StaticPrice> price_of_parts(const StaticCase& c, const StaticBands& bands,
                                          std::int64_t asked_bands, bool one_part,
                                          const std::set<StaticShare>& shares) {
  std::optional<StaticPrice> slowest;
  std::int64_t temp = 0;
  for (const StaticShare& share : shares) {
    auto price = expected_price(c, bands, asked_bands, one_part, share);
    if (!price) return std::nullopt;
    temp = std::max(temp, price->temp);
    if (!slowest || price->cycles > slowest->cycles) slowest = std::move(price);
  }
  slowest->temp = temp;
  return slowest;
}

}  // namespace

std::set<StaticShare> StaticParts::shares() const {
  std::set<StaticShare> result;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (tiles[i] == 0) return {};
    result.insert({columns[i], tiles[i]});
  }
  return result;
}

StaticParts parts_of(const StaticCase& c, std::int64_t asked) {
  StaticParts parts{asked, shares_of_batch(c.columns(), asked, c.grain()), {}};
  parts.tiles = tiles_of_parts(parts.columns, c.machine.tiles, tile_grain(c.machine));
  return parts;
}

std::int64_t most_parts(const StaticCase& c) {
  return std::min(kMostStaticParts, c.columns() / c.grain());
}

std::int64_t most_bands(const StaticCase& c) {
  const std::int64_t grain = c.problem.block.is_element() ? 1 : c.grain();
  return std::min(kMostStaticBands, ceil_div(c.counts.usual_columns, grain));
}

StaticSearch search_as_poplibs(const StaticCase& c, std::int64_t most_bytes) {
  StaticSearch search{.best = {}, .least_bytes = std::numeric_limits<std::int64_t>::max()};
  const std::vector<StaticBands> bands = all_bands(c);
  const std::int64_t groups_of_tiles = c.machine.tiles / tile_grain(c.machine);
  for (std::int64_t parts = 1; parts <= most_parts(c); ++parts) {
    const std::set<StaticShare> shares = parts_of(c, parts).shares();
    if (shares.empty()) continue;
    for (std::int64_t asked = 1; asked <= std::ssize(bands); ++asked) {
      if (parts * asked > groups_of_tiles) break;
      auto price =
          price_of_parts(c, bands[std::size_t(asked) - 1], asked, /*one_part=*/parts == 1, shares);
      if (!price) continue;
      ++search.prices;
      search.least_bytes = std::min(search.least_bytes, price->temp);
      if (price->temp > most_bytes) continue;
      if (!search.best || price->cycles < search.best->price.cycles)
        search.best = {parts, asked, *std::move(price)};
    }
  }
  return search;
}

StaticPlan plan_of(const StaticCase& c, const BlockPattern& pattern, const StaticChoice& choice) {
  const StaticBands bands = bands_of(c.counts, choice.bands);
  const StaticParts parts = parts_of(c, choice.parts);
  StaticPlan plan;
  plan.data_type = c.problem.data_type;
  plan.z_parts = choice.parts;
  plan.bands = bands.begin;
  std::vector<std::int64_t> tiles_of_layouts;
  std::int64_t column = 0, tile = 0;
  for (std::size_t i = 0; i < parts.columns.size(); ++i) {
    const auto known = std::ranges::find(tiles_of_layouts, parts.tiles[i]);
    plan.parts.push_back(
        {column, column + parts.columns[i], tile, known - tiles_of_layouts.begin()});
    column += parts.columns[i];
    tile += parts.tiles[i];
    if (known != tiles_of_layouts.end()) continue;
    tiles_of_layouts.push_back(parts.tiles[i]);
    const auto tiles = tiles_of_bands(bands, parts.tiles[i], tile_grain(c.machine));
    plan.layouts.push_back(layout_of(pattern, c.counts, bands, tiles));
  }
  plan.cost.cycles = Cycles(choice.price.cycles);
  plan.cost.temp = Bytes(choice.price.temp);
  plan.cost.passes = {{Pass::Fwd, choice.price.terms}};
  return plan;
}

}  // namespace tessera::planner::internal
