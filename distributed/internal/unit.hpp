#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/distributed/internal/batch_part.hpp"
#include "tessera/distributed/internal/grid.hpp"
#include "tessera/distributed/internal/grid_part.hpp"
#include "tessera/distributed/internal/run_product.hpp"
#include "tessera/distributed/internal/sub_ranks.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::distributed::internal {

inline std::vector<int> members(Range ranks) {
  std::vector<int> all(std::size_t(ranks.size()));
  std::iota(all.begin(), all.end(), int(ranks.begin));
  return all;
}

// One group of a rank, or all groups if the batch is split, with the ranks that share it.
struct Unit {
  Unit(std::int64_t number, Communicator& all, Range of_group, const RankSetting& setting,
       const Problem& problem, const Grid& grid, sparse::Csr<float> own)
      : group(number),
        ranks(all, members(of_group)),
        part(std::in_place_type<GridPart>, setting, ranks, problem, grid, std::move(own)) {}
  Unit(Communicator& all, const RankSetting& setting, const Problem& problem, std::int64_t leaves,
       std::span<const sparse::Csr<float>> weights)
      : ranks(all, members({0, all.size()})),
        part(std::in_place_type<BatchPart>, setting, ranks, problem, leaves, weights) {}

  std::int64_t group = 0;
  SubRanks ranks;
  std::variant<GridPart, BatchPart> part;
  Range outputs, inputs, values;  // of the rank's operands and gradients
};

}  // namespace tessera::distributed::internal
