#pragma once

#include <array>
#include <utility>
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

  void declare_buffers(BoundProgram& program);

  // Adds the nodes of one move: the load from `homes` or one of the six shifts, as loop.now() says.
  void declare_move(BoundProgram& program, device::Engine& engine,
                    const std::vector<BufferId>& homes);

  // Adds the shifts alone, for the moves back home.
  void declare_shifts(BoundProgram& program, device::Engine& engine);

  // Adds the copy of the payloads to `homes`, for when the data are at displacement 0 again.
  void declare_return(BoundProgram& program, device::Engine& engine, BufferId homes);

  void add_slots(BoundProgram& program, device::Engine& engine);

  // Prepares the exchanges. Must be called after all slots are added.
  void prepare(BoundProgram& program, const device::Engine& engine,
               std::span<const BucketSlots> homes);

  // Add the ids of both buffers, for a step that visits the buckets that arrived.
  void add_words_and_payloads(std::vector<BufferId>& ids) const;
  void add_payloads(std::vector<BufferId>& ids) const;
  BucketSlots current(TileId tile) const { return buffers_[loop_.into()][std::size_t(tile.value)]; }

 private:
  void load(device::Engine& engine);
  device::Exchange load_by(const device::Engine& engine, Displacement by) const;
  device::Exchange shift_to(const device::Engine& engine, Axis axis, std::size_t buffer) const;
  device::Exchange return_from(const device::Engine& engine, std::size_t buffer) const;

  TileMap map_;
  BucketShape shape_;
  TravelLoop& loop_;
  std::array<BucketUse, 2> uses_;
  std::vector<BucketSlots> homes_;
  std::array<std::vector<BucketSlots>, 2> buffers_;
  std::array<std::array<device::Exchange, 2>, 3> shifts_;  // [axis][buffer written]
  std::array<device::Exchange, 2> returns_;                // [buffer read]
  device::Exchange load_;  // by loaded_by_, which changes only with the pattern
  Displacement loaded_by_;
  std::vector<std::pair<int, const device::Exchange*>> nodes_;  // whose bytes prepare() sets
};

}  // namespace tessera::runtime::internal
