#pragma once

#include "tessera/planner/internal/json_archive.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// All fields of a machine. Error{InvalidArgument} when its name is not UTF-8: in JSON two such
// names could be one.
Json machine_json(const device::Machine& machine);

// {"problem", "machine", "options"}: what is asked of the planner, every field of it.
Json request_json(const Problem& problem, const device::Machine& machine, const Options& options);

}  // namespace tessera::planner::internal
