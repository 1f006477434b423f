#include "tessera/runtime/pass_spec.hpp"

#include <algorithm>

namespace tessera::runtime {

bool BucketImage::fits(const PassSpec& spec) const {
  return std::ssize(groups) == spec.groups &&
         std::all_of(groups.begin(), groups.end(), [&](const partitioner::Buckets& buckets) {
           return buckets.grid == spec.grid;
         });
}

void widen(partitioner::Travel& travel, const partitioner::Travel& by) {
  travel.y_end.resize(std::max(travel.y_end.size(), by.y_end.size()));
  for (std::size_t x = 0; x < by.y_end.size(); ++x)
    travel.y_end[x] = std::max(travel.y_end[x], by.y_end[x]);
}

partitioner::Travel BucketImage::travel() const {
  partitioner::Travel farthest;
  farthest.y_end.clear();
  for (const partitioner::Buckets& buckets : groups) widen(farthest, buckets.travel);
  return farthest;
}

}  // namespace tessera::runtime
