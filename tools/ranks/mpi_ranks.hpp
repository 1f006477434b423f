#pragma once

namespace tessera::tools {

// Lets this program run on several ranks of MPI, if a launcher has started it so.
void use_mpi_ranks();

}  // namespace tessera::tools
