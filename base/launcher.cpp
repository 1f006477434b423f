#include "tessera/base/launcher.hpp"

#include <cstdlib>
#include <initializer_list>

namespace tessera {

bool is_started_by_mpi() {
  // Those of Open MPI, MPICH and Slurm with PMIx.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace tessera
