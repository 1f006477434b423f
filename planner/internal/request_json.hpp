#pragma once

#include "tessera/planner/internal/json_archive.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// Returns all fields of a machine. Throws Error{InvalidArgument} if its name is not UTF-8, because
// two such names could become equal in JSON.
Json machine_json(const device::Machine& machine);

// Returns a request to the planner with all its fields: {"problem", "machine", "options"}.
Json request_json(const Problem& problem, const device::Machine& machine, const Options& options);

}  // namespace tessera::planner::internal
