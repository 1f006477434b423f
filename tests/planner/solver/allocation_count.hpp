#pragma once

#include <cstdint>

namespace tessera::planner::solver::test {

// Calls of operator new in this program so far, on all threads.
std::int64_t allocation_count();

}  // namespace tessera::planner::solver::test
