#pragma once

#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/bound_program.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/propagation.hpp"
#include "tessera/runtime/tile_map.hpp"

namespace tessera::runtime::internal {

// Two slots that always go together: the words of a bucket and what belongs to them (values, or
// gradients being summed).
struct BucketSlots {
  device::SlotId meta, payload;
};

// The buffers they belong to.
struct BucketUse {
  BufferId words, payload;
};

// How a pass sees buckets: which words, and how wide the payload is.
struct BucketShape {
  bool grad_a_words = false;  // the separate GradA words instead of the forward ones
  std::int64_t meta_bytes = 0;
  std::int64_t payload_bytes = 0;
};

BucketShape values_shape(const PassSpec& spec);

// A landing slot of one row looks at these bytes; the engine only reads what is loaded.
device::ByteRows one_row(const void* data, std::int64_t bytes);

// One more pair of slots on a tile for a bucket that arrives there.
BucketSlots add_bucket_slots(BoundProgram& program, device::Engine& engine, TileId tile,
                             const BucketShape& shape, const BucketUse& use);

// Where GradA has buckets of its own, the words this pass does not read are on the tile all the
// same: memory for them, in all phases.
class OtherWords {
 public:
  OtherWords(BoundProgram& program, const PassSpec& spec);
  void add_slot(BoundProgram& program, device::Engine& engine, TileId tile) const;

 private:
  std::int64_t bytes_ = 0;  // 0: there are none
  BufferId buffer_;
};

// The bucket that lies on each tile of `map`, in the order of tile numbers.
std::vector<BucketSlots> add_home_buckets(BoundProgram& program, device::Engine& engine,
                                          const TileMap& map, const BucketShape& shape,
                                          const BucketUse& use);
// Streams words and values to their home tiles.
void load_home_buckets(device::Engine& engine, const TileMap& map, const BucketShape& shape,
                       std::span<const BucketSlots> homes, const BucketImage& image);

// The same words and payload on another tile.
void gather_bucket(std::vector<device::Gather>& gathers, BucketSlots from, BucketSlots to);

}  // namespace tessera::runtime::internal
