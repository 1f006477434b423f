#pragma once

#include <chrono>
#include <functional>

#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// Ranks that are processes, started by a launcher such as `mpirun -np 4 PROGRAM`.

// Returns the number of ranks that the launcher has started on this computer, as far as it says so:
// 1 otherwise.
int ranks_of_this_computer();

// Joins the other processes, calls body(communicator), waits for the others to end as well, and
// returns what the body returned. If the body throws, `failed` turns the exception, which is being
// handled then, into an exit code (1 instead of 0) and prints what there is to say; all processes
// then end, this one with that code, and the function does not return. A process that is started
// without a launcher is one rank. May be called once. Throws Error{InvalidArgument} without MPI.
int run_mpi_rank(const std::function<int(Communicator&)>& body, const std::function<int()>& failed,
                 std::chrono::milliseconds timeout = kDefaultTimeout);

}  // namespace tessera::distributed
