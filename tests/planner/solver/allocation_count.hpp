#pragma once

#include <cstdint>

namespace tessera::inline v0::planner::solver::test {

// Calls of operator new in this program so far, on all threads.
std::int64_t allocation_count();

}  // namespace tessera::inline v0::planner::solver::test
