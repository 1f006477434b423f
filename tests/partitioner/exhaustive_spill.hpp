#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::partitioner::test {

// Cells whose rows all hold one block, one bucket a cell: blocks of a cell are then alike, and a
// bucket with k blocks of a cell spends header_words + 3 k words on them.
struct TinySpill {
  Dims splits;                       // x and y are used
  std::vector<std::int64_t> blocks;  // [cells]
  std::int64_t bucket_blocks = 0, bucket_words = 0, header_words = 0;
};

struct LeastSpill {
  std::int64_t steps = 0, travel = 0;
};

// The fewest steps there can be, and the least travel of all placements with so few, by trying
// every placement; none when nothing fits. Shares no code with the partitioner.
std::optional<LeastSpill> try_every_spill(const TinySpill& tiny);

}  // namespace tessera::partitioner::test
