#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::train::internal {

// Draws random samples of the free places of a pattern, block row by block row. Each free place is
// in the sample with the same probability, whatever else is in it, and the sample of a row depends
// on the seed and the row alone: threads may draw rows in any order. The same arguments give the
// same places on every computer.
//
// The gaps between places of a sample are geometrically distributed, so a place costs one random
// number of 32 bits and a look into a table, and places come in their order.
class SampleRows {
 public:
  // `probability` is in (0, 1]. The pattern must outlive the object.
  SampleRows(const sparse::Csr<float>& taken, double probability, std::uint64_t seed);

  // Writes the block columns of the sample of a row, ascending, and returns how many there are. The
  // lists have space for all block columns, and `to` for one more; `is_taken` is 0 before and after
  // the call. O(places + stored blocks of the row). Thread-safe.
  std::size_t draw(std::int64_t row, std::span<char> is_taken, std::span<std::int32_t> to) const;

 private:
  std::size_t draw_columns(std::int64_t row, const char* is_taken, std::int32_t* to) const;

  const sparse::Csr<float>& taken_;
  double probability_;
  std::uint64_t seed_;
  // A gap is the number of leading entries that a random number is below; all of them: another gap
  // follows. Empty if every place is taken.
  std::vector<std::uint32_t> below_;
  std::vector<std::int32_t> least_gap_;  // for the leading bits of the random number
};

}  // namespace tessera::train::internal
