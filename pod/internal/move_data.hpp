#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/collectives/run_schedule.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod::internal {

// The devices that run a collective with each other, by their index in the order of places_of().
using Members = std::vector<std::size_t>;

// Returns the groups of devices whose coordinates differ along an axis alone. Member m of a group
// has the coordinate m.
std::vector<Members> groups_along(const PodGrid& grid, const std::vector<DevicePlace>& places,
                                  Axis axis);

// Returns the values of member m's part of `size` values by a schedule.
Range part_range(const collectives::Schedule& schedule, std::int64_t size, std::int32_t member);

}  // namespace tessera::pod::internal
