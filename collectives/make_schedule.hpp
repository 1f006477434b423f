#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/collectives/schedule.hpp"

namespace tessera::collectives {

// The part of a collective that runs on one level of a pod.
struct LevelPart {
  std::int32_t members = 1;
  Algorithm algorithm = Algorithm::OneWayRing;

  friend bool operator==(const LevelPart&, const LevelPart&) = default;
};

// Returns the algorithms that so many members can use: all of them, but Halving only for powers of
// two, rings in two directions only for more than two members, and MeetByHalves only for an even
// number of these.
std::vector<Algorithm> algorithms_for(std::int32_t members);

// Returns the schedule of an operation over the product of the members of all levels; member m has
// the position m % levels[0].members on the first level, as devices have in a pod. Data are
// gathered from the last level to the first, so the slow links of outer levels carry the fewest
// bytes, and summed in the opposite order.
//
// Throws Error{InvalidArgument} for no member, an algorithm that the members cannot use, or more
// than 2^15 members. O(transfers), which is O(members^2).
Schedule make_schedule(Operation operation, std::span<const LevelPart> levels);
Schedule make_schedule(Operation operation, LevelPart level);

}  // namespace tessera::collectives
