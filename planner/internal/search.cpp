#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {
namespace {

bool is_batch_count(const Case& c, std::int64_t z) {
  return c.parity() ? c.grains.z % z == 0 : is_share_count(c.grains.z, z);
}

bool obeys(const std::optional<std::int64_t>& pin, std::int64_t value) {
  return !pin || *pin == value;
}

}  // namespace

bool partition_is_legal(const Case& c, Dims parts) {
  const PlanConstraints& pins = c.options.constraints;
  return parts.g == c.grains.g && parts.product() <= c.machine.tiles &&
         is_share_count(c.grains.x, parts.x) && is_share_count(c.grains.y, parts.y) &&
         parts.z <= c.grains.z && is_batch_count(c, parts.z) && obeys(pins.x, parts.x) &&
         obeys(pins.y, parts.y) && obeys(pins.z, parts.z);
}

PartsCost cost_of(const Case& c, Dims parts) {
  const Cut cut = make_cut(c, parts);
  const BucketSize bucket = bucket_size(c, cut);
  if (!words_fit(c, cut, bucket)) return {};
  const Estimate e = estimate(c, cut, bucket);
  if (!c.parity() && e.temp + e.resident > c.machine.tile_memory.value) return {};
  return {true, e.cycles, e.temp};
}

void visit_partitions(const Case& c, const std::function<void(Dims)>& visit) {
  const std::int64_t g = c.grains.g, tiles = c.machine.tiles;
  for (std::int64_t x = 1; g * x <= tiles && x <= c.grains.x; ++x) {
    if (!is_share_count(c.grains.x, x) || !obeys(c.options.constraints.x, x)) continue;
    for (std::int64_t y = 1; g * x * y <= tiles && y <= c.grains.y; ++y) {
      if (!is_share_count(c.grains.y, y) || !obeys(c.options.constraints.y, y)) continue;
      for (std::int64_t z = 1; g * x * y * z <= tiles && z <= c.grains.z; ++z)
        if (is_batch_count(c, z) && obeys(c.options.constraints.z, z)) visit(Dims{g, x, y, z});
    }
  }
}

}  // namespace tessera::planner::internal
