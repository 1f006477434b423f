#pragma once

#include <chrono>
#include <functional>

#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// Runs body(communicator) on `ranks` threads of this process, each with the communicator of one
// rank, and returns when all have ended. Programs that need no launcher use it, and tests. If a
// rank throws, the others fail at their next wait, and the exception of the rank that failed first
// is thrown again; an Error keeps its code and gets "rank N of M: " in front. An abort() without an
// exception ends with OtherRankFailed. Throws Error{InvalidArgument} unless `ranks` is 1 or more.
// Example: run_ranks(4, [](Communicator& ranks) { ranks.barrier("start"); });
void run_ranks(int ranks, const std::function<void(Communicator&)>& body,
               std::chrono::milliseconds timeout = kDefaultTimeout);

}  // namespace tessera::distributed
