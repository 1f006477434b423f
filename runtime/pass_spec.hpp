#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/cost/method.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime {

// What the builder of one pass needs to know. Shapes are those of the grid: padded. All groups are
// cut alike, run in the same steps and share nothing.
struct PassSpec {
  partitioner::TileGrid grid;  // of one group
  std::int64_t groups = 1;
  codelets::Method method = codelets::Method::ElementFwd;
  DataType partials_type = DataType::Float;

  DataType data_type() const { return grid.data_type; }
  std::int64_t word_bytes() const { return grid.word_bits / 8; }
  // The partition with the groups.
  Dims parts() const { return {groups, grid.splits.x, grid.splits.y, grid.splits.z}; }
};

// Encoded matrices, one of each group, as the machine reads them: the buckets, and their values in
// the layer's type.
//   values        [groups][buckets][values_per_bucket]
//   travel_words  partitioner::travel_words of travel(): what steers propagation
struct BucketImage {
  std::span<const partitioner::Buckets> groups;
  const std::byte* values = nullptr;
  std::span<const std::uint32_t> travel_words;

  // All groups were encoded for the grid, and none is missing.
  bool fits(const PassSpec& spec) const;
  // How far the buckets of any group must travel: the machine moves those of all groups at once.
  partitioner::Travel travel() const;
};

}  // namespace tessera::runtime
