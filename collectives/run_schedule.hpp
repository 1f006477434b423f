#pragma once

#include <span>

#include "tessera/collectives/schedule.hpp"

namespace tessera::collectives {

// Moves the data of all members by a schedule. data[m] are all of the data of member m, of the same
// size for every member; piece p is share_of(size, 1, pieces, p). A sum is added in the order of
// the members, whatever the order in which the schedule brings the contributions, so its bits
// depend on neither the algorithm nor the levels. Data that the operation does not promise are
// unspecified.
//
// Throws Error{InvalidArgument} for a number of data that is not that of the members, or for
// different sizes. Sums take a copy of all data. O(bytes moved).
void run_schedule(const Schedule& schedule, std::span<const std::span<float>> data);

}  // namespace tessera::collectives
