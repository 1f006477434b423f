#pragma once

#include "tessera/distributed/communicator.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/tools/run/ranks.hpp"

namespace tessera::tools {

// Runs a layer that is spread over ranks (distributed::RankLayer), measures it and checks
// its results as run_on_host does. Each rank reads its rows of the weights (rank_weights.hpp), or
// all of them for several groups or replicas, and checks its own results. Times are those of the
// slowest rank in each run; the report has what each rank has, how long it takes, how long it
// waits, and what it receives. The run of the first rank is complete; those of the others have no
// files. Collective. Throws Error{InvalidArgument} for what one process alone can do: modelled
// machines, products and dense passes; and for a number of replicas that does not divide the ranks
// of a group.
HostRun run_on_ranks(const Arguments& arguments, const char* program, Ranks& own,
                     distributed::Communicator& ranks);

// Returns the threads of a rank, of which `asked` were asked for. With 0 a rank that is bound takes
// its cores, and one that is not its share of all.
int threads_of_rank(int asked);

}  // namespace tessera::tools
