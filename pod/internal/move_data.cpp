#include "tessera/pod/internal/move_data.hpp"

#include <map>
#include <tuple>

namespace tessera::pod::internal {

std::vector<Members> groups_along(const PodGrid& grid, const std::vector<DevicePlace>& places,
                                  Axis axis) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, Members> groups;
  for (std::size_t d = 0; d < places.size(); ++d) {
    Dims others = places[d].at;
    const std::int64_t member = along(others, axis);
    (axis == Axis::X ? others.x : axis == Axis::Y ? others.y : others.z) = 0;
    Members& group = groups[{others.g, others.x, others.y, others.z}];
    group.resize(std::size_t(along(grid.parts(), axis)));
    group[std::size_t(member)] = d;
  }
  std::vector<Members> result;
  for (auto& [ignored, group] : groups) result.push_back(std::move(group));
  return result;
}

Range part_range(const collectives::Schedule& schedule, std::int64_t size, std::int32_t member) {
  const std::int32_t first = member * schedule.pieces_per_member;
  const std::int32_t last = first + schedule.pieces_per_member - 1;
  return {share_of(size, 1, schedule.pieces(), first).begin,
          share_of(size, 1, schedule.pieces(), last).end};
}

}  // namespace tessera::pod::internal
