#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/base/data_type.hpp"
#include "tessera/base/placement.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/codelets/cost/method.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime {

// The inputs from which the program of one pass is built. Sizes are the padded ones of the grid.
// All groups are cut alike, run in the same steps and share no data.
struct PassSpec {
  partitioner::TileGrid grid;  // of one group
  std::int64_t groups = 1;
  codelets::Method method = codelets::Method::ElementFwd;
  DataType partials_type = DataType::Float;
  Placement placement = Placement::AtHome;  // of the dense operands and results

  DataType data_type() const { return grid.data_type; }

  std::int64_t word_bytes() const { return grid.word_bits / 8; }

  // Returns the splits of the grid, with the number of groups as g.
  Dims parts() const { return {groups, grid.splits.x, grid.splits.y, grid.splits.z}; }
};

// The encoded matrices of all groups as the machine reads them: the buckets, and their values in
// the layer's type. The data are the caller's and must stay valid during a run.
//   values        [groups][buckets][values_per_bucket]
//   travel_words  partitioner::travel_words of travel(); they steer propagation
struct BucketImage {
  std::span<const partitioner::Buckets> groups;
  const std::byte* values = nullptr;
  std::span<const std::uint32_t> travel_words;

  // True: every group is present and was encoded for the grid of `spec`.
  bool fits(const PassSpec& spec) const;

  // Returns the farthest that buckets of any group must travel: the machine moves the buckets of
  // all groups at once.
  partitioner::Travel travel() const;
};

// Returns the number of a cell's bucket among those of all groups, each of which is cut like
// `grid`.
inline std::int64_t bucket_of(const partitioner::TileGrid& grid, const Cell& cell) {
  return cell.g * grid.buckets() + grid.bucket_index(cell.x, cell.y, cell.z);
}

// Makes `travel` reach as far as `by` does at every x distance.
void widen(partitioner::Travel& travel, const partitioner::Travel& by);

}  // namespace tessera::runtime
