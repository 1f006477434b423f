#pragma once

#include <string>

#include "tessera/collectives/schedule.hpp"

namespace tessera::collectives {

// Follows the data of every member through a schedule, step by step, without knowledge of the
// algorithms. Returns an empty text if every member ends with what the operation promises, and
// otherwise the first fault: a member that sends what it does not have, a contribution that is
// added twice, a transfer outside the data, or a result that is missing. O(transfers * pieces *
// members) at most.
std::string check_schedule(const Schedule& schedule);

}  // namespace tessera::collectives
