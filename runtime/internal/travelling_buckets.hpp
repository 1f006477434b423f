#pragma once

#include <array>
#include <vector>

#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"

namespace tessera::runtime::internal {

// The two buffers per tile that propagation uses. At each step every tile sends the bucket in its
// current buffer to the next tile along one axis, into that tile's other buffer; then the buffers
// swap roles. This makes six exchanges: three axes, and two buffers to write.
//   reads    the current buffer of the previous tile   words and payload
//   writes   the other buffer
//   steps    one exchange for each shift; the first one reads the home buckets, at any distance
// Invariant: after a move the buckets are in buffer loop.into(), on every tile.
class TravellingBuckets {
 public:
  TravellingBuckets(const TileMap& map, const BucketShape& shape, TravelLoop& loop)
      : map_(map), shape_(shape), loop_(loop) {}

  // Adds both buffers to the program, which must outlive this object.
  void declare_buffers(TileProgram& program);

  // Adds the nodes of one move: the load from `homes`, whose buffers are read, or one of the six
  // shifts, as loop.now() says.
  void declare_move(TileProgram& program, std::span<const BucketSlots> homes,
                    const std::vector<BufferId>& read);

  // Adds the shifts alone, for the moves back home.
  void declare_shifts(TileProgram& program);

  // Adds the copy of the payloads to the homes, of this buffer, for when the data are at
  // displacement 0 again.
  void declare_return(TileProgram& program, std::span<const BucketSlots> homes, BufferId buffer);

  // Add the ids of both buffers, for a step that visits the buckets that arrived.
  void add_words_and_payloads(std::vector<BufferId>& ids) const;
  void add_payloads(std::vector<BufferId>& ids) const;
  BucketSlots current(TileId tile) const { return buffers_[loop_.into()][std::size_t(tile.value)]; }

 private:
  void load(device::Engine& engine);
  // Returns the gathers that move all buckets into a buffer.
  std::vector<device::Gather> moved_by(Displacement by, std::span<const BucketSlots> from,
                                       std::size_t into) const;

  TileMap map_;
  BucketShape shape_;
  TravelLoop& loop_;
  std::array<BucketUse, 2> uses_;
  std::vector<BucketSlots> homes_;
  std::array<std::vector<BucketSlots>, 2> buffers_;
  const device::Exchange* first_load_ = nullptr;  // by first_by_
  device::Exchange other_load_;                   // by other_by_, which changes with the pattern
  Displacement first_by_, other_by_;
};

}  // namespace tessera::runtime::internal
