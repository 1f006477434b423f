#pragma once

#include <cstddef>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/cost/method.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::runtime {

// What the builder of one pass needs to know. Shapes are those of the grid: padded.
struct PassSpec {
  partitioner::TileGrid grid;
  codelets::Method method = codelets::Method::ElementFwd;
  DataType partials_type = DataType::Float;

  DataType data_type() const { return grid.data_type; }
  std::int64_t word_bytes() const { return grid.word_bits / 8; }
};

// An encoded matrix as the machine reads it: the buckets, and their values in the layer's type.
//   values  [buckets][values_per_bucket]
struct BucketImage {
  const partitioner::Buckets* buckets = nullptr;
  const std::byte* values = nullptr;
};

}  // namespace tessera::runtime
