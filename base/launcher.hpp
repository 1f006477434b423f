#pragma once

namespace tessera {

// Returns true if a launcher of MPI, such as mpirun, has started this process as one of several
// ranks.
bool is_started_by_mpi();

}  // namespace tessera
