#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/collectives/schedule.hpp"
#include "tessera/device/pod.hpp"

namespace tessera::collectives {

// The price of a schedule on a pod.
struct ScheduleCost {
  double seconds = 0;  // over the steps: the latency, then the bytes of the busiest link
  std::vector<double> level_bytes;  // sent over the links of each level; a hop counts as sent again

  friend bool operator==(const ScheduleCost&, const ScheduleCost&) = default;
};

// The devices of one collective: those of its member 0, 1, 2 and so on.
using Group = std::vector<std::int64_t>;

// Returns the price of a schedule that all groups run at the same time, with pieces of so many
// bytes. A message crosses the levels from the first to the last, and on a ring it goes the shorter
// way, or half of it each way if both are as long. A step takes the largest latency of the levels
// that it uses and the time of its busiest link.
//
// Throws Error{InvalidArgument} for a group that has not a device of the pod for every member.
// O(transfers * groups * hops).
ScheduleCost schedule_cost(const Schedule& schedule, std::span<const Group> groups,
                           const device::Pod& pod, double piece_bytes);

// The place of a collective on one level: its groups are the devices at distances of `stride` among
// the first `used` devices of the level, and all groups run at the same time.
struct LevelPlace {
  std::size_t level = 0;  // of the pod
  std::int32_t members = 1, stride = 1, used = 1;

  friend bool operator==(const LevelPlace&, const LevelPlace&) = default;
};

// Returns the groups of a place, as devices of its level.
std::vector<Group> groups_of(const LevelPlace& place);

// The price of a gather, or of a sum, on one level by one algorithm. Both are the same, because a
// sum sends the messages of a gather back.
struct LevelCost {
  Algorithm algorithm = Algorithm::OneWayRing;
  std::int64_t steps = 0;
  double parts = 0;  // of one member that pass at the rate of a device, summed over the steps
  double sent = 0;   // parts of one member over all links of the level, by all groups together
  double held = 0;   // parts of one member that a member of a sum receives in one step, at most

  friend bool operator==(const LevelCost&, const LevelCost&) = default;

  // Returns the seconds with parts of so many bytes.
  double seconds(const device::PodLevel& level, double part_bytes) const {
    return double(steps) * level.step_seconds + parts * part_bytes / level.bytes_per_second;
  }
};

// Returns the price of each algorithm that the place can use. O(members^2 * used) for each.
std::vector<LevelCost> level_costs(const device::PodLevel& level, const LevelPlace& place);

}  // namespace tessera::collectives
