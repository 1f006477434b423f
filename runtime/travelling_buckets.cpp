#include "tessera/runtime/internal/travelling_buckets.hpp"

#include <utility>

namespace tessera::runtime::internal {
namespace {

std::int64_t parts_along(const Dims& splits, Axis axis) {
  return axis == Axis::X ? splits.x : axis == Axis::Y ? splits.y : splits.z;
}

Cell one_along(Axis axis) {
  return {axis == Axis::X ? 1 : 0, axis == Axis::Y ? 1 : 0, axis == Axis::Z ? 1 : 0};
}

}  // namespace

TravellingBuckets::TravellingBuckets(device::Engine& engine, const TileMap& map,
                                     const BucketShape& shape, Range phases)
    : map_(map) {
  for (auto& buffer : buffers_)
    for (const TileId tile : map.all())
      buffer.push_back(add_bucket_slots(engine, tile, shape, phases));
}

device::Exchange TravellingBuckets::shift_to(const device::Engine& engine, Axis axis,
                                             int buffer) const {
  const Cell step = one_along(axis);
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all()) {
    const Cell before = map_.moved(map_.cell(tile), {-step.x, -step.y, -step.z});
    gather_bucket(gathers, buffers_[std::size_t(1 - buffer)][std::size_t(map_.tile(before).value)],
                  buffers_[std::size_t(buffer)][std::size_t(tile.value)]);
  }
  return engine.prepare(std::move(gathers));
}

void TravellingBuckets::prepare(const device::Engine& engine) {
  for (const Axis axis : {Axis::X, Axis::Y, Axis::Z})
    for (const int buffer : {0, 1})
      if (parts_along(map_.splits(), axis) > 1)
        shifts_[std::size_t(axis)][std::size_t(buffer)] = shift_to(engine, axis, buffer);
}

void TravellingBuckets::load(device::Engine& engine, std::string_view phase,
                             std::span<const BucketSlots> homes, Displacement by) {
  current_ = 0;
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all()) {
    const Cell from = map_.moved(map_.cell(tile), {-by.x, -by.y, -by.z});
    gather_bucket(gathers, homes[std::size_t(map_.tile(from).value)], current(tile));
  }
  engine.exchange(phase, engine.prepare(std::move(gathers)));
}

void TravellingBuckets::shift(device::Engine& engine, std::string_view phase, Axis axis) {
  current_ = 1 - current_;
  engine.exchange(phase, shifts_[std::size_t(axis)][std::size_t(current_)]);
}

void TravellingBuckets::bring_home(device::Engine& engine, std::string_view phase,
                                   std::span<const BucketSlots> homes) const {
  std::vector<device::Gather> gathers;
  for (const TileId tile : map_.all())
    gathers.push_back(
        {{{current(tile).payload, {0, 1}}}, {homes[std::size_t(tile.value)].payload}});
  engine.exchange(phase, engine.prepare(std::move(gathers)));
}

}  // namespace tessera::runtime::internal
