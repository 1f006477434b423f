#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner::internal {

// What changes in the rows of one x partition.
struct PartChange {
  std::int64_t first_row = 0, end_row = 0;          // block rows
  std::span<const sparse::BlockAt> removed, added;  // ascending
  std::int64_t shift = 0;                           // of its positions by what changes before it
  bool cut_again = false;  // everything of it is cheaper to encode afresh than to change

  std::int64_t count() const { return std::ssize(removed) + std::ssize(added); }
};

// A change, cut where the matrix is cut along x. Refers to `change`.
class ChangeByPart {
 public:
  // `matrix` is the one with the change applied. O(x partitions * log(changes)), and a sort of
  // lists that do not ascend.
  ChangeByPart(const sparse::PatternChange& change, const Pattern& matrix, const TileGrid& grid);
  ChangeByPart(const ChangeByPart&) = delete;
  ChangeByPart& operator=(const ChangeByPart&) = delete;

  const std::vector<PartChange>& parts() const { return parts_; }
  std::span<const sparse::BlockAt> removed() const { return removed_; }
  std::span<const sparse::BlockAt> added() const { return added_; }
  // Numbers of the parts to be cut again, ascending.
  std::vector<std::int64_t> cut_again() const;
  void cut_none_again();

 private:
  std::vector<sparse::BlockAt> sorted_removed_, sorted_added_;  // where the change is not sorted
  std::span<const sparse::BlockAt> removed_, added_;
  std::vector<PartChange> parts_;  // [splits.x]
};

}  // namespace tessera::partitioner::internal
