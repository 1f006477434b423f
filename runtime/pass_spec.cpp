#include "tessera/runtime/pass_spec.hpp"

#include <algorithm>

namespace tessera::runtime {

bool BucketImage::fits(const PassSpec& spec) const {
  return std::ssize(groups) == spec.groups &&
         std::all_of(groups.begin(), groups.end(), [&](const partitioner::Buckets& buckets) {
           return buckets.grid == spec.grid;
         });
}

partitioner::Travel BucketImage::travel() const {
  partitioner::Travel farthest;
  farthest.y_end.clear();
  for (const partitioner::Buckets& buckets : groups) {
    const auto& y_end = buckets.travel.y_end;
    farthest.y_end.resize(std::max(farthest.y_end.size(), y_end.size()));
    for (std::size_t x = 0; x < y_end.size(); ++x)
      farthest.y_end[x] = std::max(farthest.y_end[x], y_end[x]);
  }
  return farthest;
}

}  // namespace tessera::runtime
