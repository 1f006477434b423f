#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner::internal {

// PartChange is the part of a change that affects the rows of one x partition.
struct PartChange {
  std::int64_t first_row = 0, end_row = 0;          // block rows
  std::span<const sparse::BlockAt> removed, added;  // ascending
  std::int64_t shift = 0;  // added to its positions, because of changes before it
  bool cut_again = false;  // true: cheaper to encode completely than to change

  std::int64_t count() const { return std::ssize(removed) + std::ssize(added); }
};

// ChangeByPart cuts a change at the borders of the x partitions. It refers to `change`.
class ChangeByPart {
 public:
  // `matrix` has the change applied. O(x partitions * log(changes)), and a sort of lists that do
  // not ascend.
  ChangeByPart(const sparse::PatternChange& change, const Pattern& matrix, const TileGrid& grid);
  ChangeByPart(const ChangeByPart&) = delete;
  ChangeByPart& operator=(const ChangeByPart&) = delete;

  const std::vector<PartChange>& parts() const { return parts_; }
  std::span<const sparse::BlockAt> removed() const { return removed_; }
  std::span<const sparse::BlockAt> added() const { return added_; }

  // Numbers of the parts that are to be cut again, ascending.
  std::vector<std::int64_t> cut_again() const;
  void cut_none_again();

 private:
  std::vector<sparse::BlockAt> sorted_removed_, sorted_added_;  // if the change is not sorted
  std::span<const sparse::BlockAt> removed_, added_;
  std::vector<PartChange> parts_;  // [splits.x]
};

}  // namespace tessera::partitioner::internal
