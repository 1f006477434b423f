#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/planner/internal/static_cut.hpp"

namespace tessera::planner::internal {

// One static product on one machine: everything that its cuts have in common.
struct StaticCase {
  const Problem& problem;
  const device::Machine& machine;
  StaticCounts counts;
  // True: cuts are those of GradA alone. The pattern and its counts are transposed, and the values
  // are brought to the tiles in every pass.
  bool grad_a_alone = false;

  std::int64_t data_bytes() const { return bytes_of(problem.data_type); }
  std::int64_t grain() const { return machine.vector_width(problem.data_type); }
  std::int64_t columns() const { return round_up(problem.size.z, grain()); }
};

// A part of the batch as its price sees it.
struct StaticShare {
  std::int64_t columns = 0, tiles = 0;

  friend auto operator<=>(const StaticShare&, const StaticShare&) = default;
};

// The price of a cut: its terms in the order in which the steps run, and the bytes of one tile.
struct StaticPrice {
  std::vector<CostTerm> terms;
  std::int64_t cycles = 0, temp = 0;
};

// Returns PopLibs' price of the band with the most blocks for each tile, in one part of the batch,
// if the pattern were random. Empty if there are too few tiles for the bands, or if an offset of a
// kernel or the number of its words does not fit a word.
std::optional<StaticPrice> expected_price(const StaticCase& c, const StaticBands& bands,
                                          std::int64_t asked_bands, bool one_part,
                                          const StaticShare& share);

}  // namespace tessera::planner::internal
