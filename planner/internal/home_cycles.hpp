#pragma once

#include <cstdint>

#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/homes.hpp"

namespace tessera::planner::internal {

// Returns the cycles of bringing a tensor from one home to another: clearing pieces with padding,
// and one exchange in which every tile sends and receives what it does not keep.
Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine);

// Returns the cycles in which every tile fetches its piece of `to` from the tiles of `from`, as a
// part of an exchange: each run of elements is sent once to all tiles that need it, and all tiles
// of a bus that need the same piece receive it together.
Cycles fetch_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                    const device::Machine& machine);

// Returns the cycles of clearing the padding of the piece with the most, of its rows and, if
// `columns` is true, of its columns, without the launch; 0 if there is none.
Cycles clear_cycles(const Home& home, bool columns, std::int64_t element_bytes,
                    const device::Machine& machine);

}  // namespace tessera::planner::internal
