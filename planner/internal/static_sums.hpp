#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/static_expected.hpp"
#include "tessera/planner/internal/static_load.hpp"

// The sums that tiles of a static plan add after their kernels. Of results that several tiles have
// in parts, each of them adds its share, in the order of tiles.
namespace tessera::planner::internal {

// The sums of one tile.
struct CountedSums {
  std::int64_t elements = 0;  // results of the tile
  std::int64_t operands = 0;  // sums that it adds, its own included
  std::int64_t sent = 0;      // sums that other tiles add
  std::int64_t senders = 0;   // tiles that send sums; 0 unless the machine has a price for them

  // Adds a share of `all` results that `depth` tiles have.
  void add(std::int64_t share, std::int64_t all, std::int64_t depth) {
    elements += share;
    operands += share * depth;
    sent += all - share;
  }

  std::int64_t others() const { return operands - elements; }

  // Returns the mean number of sums for an element, rounded up; 0 without elements.
  std::int64_t depth() const { return elements == 0 ? 0 : ceil_div(operands, elements); }
};

// Deals the elements of rows that lie on several tiles to these tiles.
class RowShares {
 public:
  // `load` must outlive the object.
  RowShares(const StaticCase& c, const StaticLoad& load, std::int64_t columns);

  // Returns the sums of the next tile. Rows of one tile are not added.
  CountedSums next_tile();

 private:
  const StaticLoad& load_;
  std::int64_t elements_;  // of a row of blocks
  std::size_t next_tile_ = 0;
  std::vector<std::int64_t> dealt_;  // [block rows] elements that tiles have by now
  std::vector<std::int64_t> share_;  // [depth - 1] elements of a tile but the last
  // Tiles of every row that several tiles have, if senders have a price.
  std::vector<std::vector<std::int32_t>> tiles_of_row_;
  std::vector<std::int32_t> senders_;  // scratch
};

// Returns the sums of a tile with `values` gradients in GradW, if all parts of the batch have the
// same layout: the tile has one sender in each other part. No sums if there is one part.
CountedSums gradient_sums(std::int64_t values, std::int64_t parts, std::int64_t part);

// Returns the same for every part and tile of a plan: [parts][tiles of the part]. Neighbouring
// blocks of a tile are dealt together if they are neighbours on a tile of every other part.
// Senders are counted if `with_senders` is true.
std::vector<std::vector<CountedSums>> gradient_sums(const StaticPlan& plan,
                                                    const BlockPattern& pattern, bool with_senders);

}  // namespace tessera::planner::internal
