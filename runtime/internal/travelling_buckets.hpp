#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

// Propagation's two buffers per tile. At each step every tile hands the bucket in its current
// buffer to the next tile along one axis, into that tile's other buffer; then the buffers swap
// roles.
//   reads    the current buffer of the tile before   meta words, payload
//   writes   the other buffer
//   steps    one exchange a shift; the first load reads the home buckets, any distance away
// Invariant: current_ is the buffer that holds the buckets now, on every tile.
class TravellingBuckets {
 public:
  TravellingBuckets(device::Engine& engine, const TileMap& map, const BucketShape& shape,
                    Range phases);
  // Works out the six exchanges; call after all slots are added.
  void prepare(const device::Engine& engine);

  // Carries out the steps, from `homes`; compute() is called where a step says so.
  template <class Compute>
  void run(device::Engine& engine, std::string_view phase, std::span<const BucketSlots> homes,
           std::span<const PropagationStep> steps, Compute&& compute) {
    for (const PropagationStep& step : steps) {
      if (&step == steps.data())
        load(engine, phase, homes, step.after);
      else
        shift(engine, phase, step.shift);
      if (step.compute) compute();
    }
  }
  void shift(device::Engine& engine, std::string_view phase, Axis axis);
  // Payloads back to `homes`, once the data stand at displacement 0 again.
  void bring_home(device::Engine& engine, std::string_view phase,
                  std::span<const BucketSlots> homes) const;

  BucketSlots current(TileId tile) const {
    return buffers_[std::size_t(current_)][std::size_t(tile.value)];
  }

 private:
  void load(device::Engine& engine, std::string_view phase, std::span<const BucketSlots> homes,
            Displacement by);
  device::Exchange shift_to(const device::Engine& engine, Axis axis, int buffer) const;

  TileMap map_;
  std::array<std::vector<BucketSlots>, 2> buffers_;
  std::array<std::array<device::Exchange, 2>, 3> shifts_;  // [axis][buffer written]
  int current_ = 0;
};

}  // namespace tessera::runtime::internal
