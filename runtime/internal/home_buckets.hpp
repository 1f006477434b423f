#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/propagation.hpp"

namespace tessera::runtime::internal {

// The two slots of a bucket on a tile: its words, and its payload (values, or sums of gradients).
struct BucketSlots {
  device::SlotId meta, payload;
};

// The buffers of these two slots.
struct BucketUse {
  BufferId words, payload;
};

// Buckets at home: their buffers, and their slots by tile, with cells in the order Yzx.
struct HomeBuckets {
  BucketUse use;
  std::vector<BucketSlots> slots;

  const BucketSlots& on(TileId tile) const { return slots[std::size_t(tile.value)]; }
};

// The form in which a pass reads buckets: its kind of words, and the sizes of words and payload.
struct BucketShape {
  bool grad_a_words = false;  // True: the separate GradA words. False: the forward words
  std::int64_t meta_bytes = 0;
  std::int64_t payload_bytes = 0;
};

// Returns the form in which a pass reads buckets whose payload are values.
BucketShape values_shape(const PassSpec& spec);

// Return data as rows of so many bytes, or as one row, to be loaded into a slot. The engine only
// reads them.
device::ByteRows rows_at(const void* data, std::int64_t rows, std::int64_t row_bytes);
inline device::ByteRows one_row(const void* data, std::int64_t bytes) {
  return rows_at(data, 1, bytes);
}

inline constexpr std::int64_t kFloatBytes = sizeof(float);
inline float* floats(const device::ByteRows& rows) { return reinterpret_cast<float*>(rows.data); }

// Adds a pair of slots on a tile, for a bucket or for several.
BucketSlots add_bucket_slots(TileProgram& program, TileId tile, const BucketShape& shape,
                             const BucketUse& use, std::int64_t buckets = 1);

// Adds slots for the words of the buckets of these tiles that this pass does not read, if GradA has
// separate words. They stay on the tiles, so they need memory during the whole program.
void add_other_words(TileProgram& program, const PassSpec& spec, std::span<const TileId> tiles);

// Adds the buckets of a pass alone on the tiles of `map`, and the words that it does not read.
HomeBuckets add_home_buckets(TileProgram& program, const PassSpec& spec, const TileMap& map);

// Returns the words of the bucket at home on the tile of a cell, as one row.
device::ByteRows home_words(std::span<const partitioner::Buckets> groups, const Cell& cell,
                            const BucketShape& shape);

// Loads words and values to their home tiles.
void load_home_buckets(device::Engine& engine, const TileMap& map, const BucketShape& shape,
                       const HomeBuckets& homes, const BucketImage& image);

// Writes a payload of so many bytes for each bucket, in their order, from a slot of its tile:
// slot_of(tile). Allocates nothing.
template <class SlotOf>
void collect_payloads(const device::Engine& engine, const TileMap& map,
                      const partitioner::TileGrid& grid, const SlotOf& slot_of, std::int64_t bytes,
                      std::byte* to) {
  if (bytes == 0) return;
  for (std::int64_t t = 0; t < map.tiles(); ++t)
    std::memcpy(to + bucket_of(grid, map.cell(TileId(t))) * bytes,
                engine.view(slot_of(TileId(t))).data, std::size_t(bytes));
}

// Adds the gathers that copy a bucket's words and payload to another tile.
void gather_bucket(std::vector<device::Gather>& gathers, BucketSlots from, BucketSlots to);

// Adds the gathers that copy the bucket at home on a tile to all other tiles of its cell.
// `arrived_at(tile, z)` are the slots of `tile` for the bucket of part z.
template <class ArrivedAt>
void gather_to_cell(std::vector<device::Gather>& gathers, const TileMap& map, TileId tile,
                    std::int64_t z_parts, BucketSlots home, const ArrivedAt& arrived_at) {
  const Cell c = map.cell(tile);
  device::Gather words{{{home.meta, {0, 1}}}, {}}, payload{{{home.payload, {0, 1}}}, {}};
  for (std::int64_t k = 0; k < z_parts; ++k) {
    if (k == c.z) continue;
    const BucketSlots to = arrived_at(map.tile({c.x, c.y, k, c.g}), c.z);
    words.destinations.push_back(to.meta);
    payload.destinations.push_back(to.payload);
  }
  gathers.push_back(std::move(words));
  gathers.push_back(std::move(payload));
}

}  // namespace tessera::runtime::internal
