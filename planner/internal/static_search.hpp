#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "tessera/planner/internal/static_expected.hpp"

namespace tessera::planner::internal {

// PopLibs looks no further, which keeps its search short.
inline constexpr std::int64_t kMostStaticParts = 32, kMostStaticBands = 128;

// The parts of a batch with a number of tiles each.
struct StaticParts {
  std::int64_t asked = 1;
  std::vector<std::int64_t> columns, tiles;  // [parts]

  // Returns the different pairs of columns and tiles; none if some part has no tile.
  std::set<StaticShare> shares() const;
};

StaticParts parts_of(const StaticCase& c, std::int64_t asked);

// Returns the counts of parts and of bands up to which the search tries.
std::int64_t most_parts(const StaticCase& c);
std::int64_t most_bands(const StaticCase& c);

// A cut and its price.
struct StaticChoice {
  std::int64_t parts = 1, bands = 1;  // as asked for
  StaticPrice price;
};

// The outcome of a search.
struct StaticSearch {
  std::optional<StaticChoice> best;
  std::int64_t least_bytes = 0;  // of all cuts; of meaning only if there is no `best`
  std::int64_t prices = 0;       // cuts whose price was computed
};

// Looks at every cut with PopLibs' prices. Of equally cheap ones the first is found: with the least
// parts, and then with the least bands.
StaticSearch search_as_poplibs(const StaticCase& c, std::int64_t most_bytes);

// Returns the plan of a choice: its cut and its layouts.
StaticPlan plan_of(const StaticCase& c, const BlockPattern& pattern, const StaticChoice& choice);

}  // namespace tessera::planner::internal
