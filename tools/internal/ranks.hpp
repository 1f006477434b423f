#pragma once

#include <cstdint>
#include <functional>

#include "tessera/distributed/communicator.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace CLI {
class App;
}

// Programs that a launcher such as mpirun has started as several ranks.
namespace tessera::tools::internal {

// Adds --timeout, in seconds.
void add_rank_options(CLI::App& app, double& timeout_seconds);

// Throws CLI::ValidationError if --timeout is given to a program that is one process.
void check_rank_options(const CLI::App& app);

// Returns body(), called on each rank if a launcher has started the program. Ranks but the first
// one print no results. An exception on one rank is printed there, as `program`'s, and ends all
// ranks with its exit code.
int with_ranks(const char* program, double timeout_seconds, const std::function<int()>& body);

// Returns body() of a program that one process runs. On several ranks, which would each do all of
// it, the first one throws Error{InvalidArgument} that says so, and all end.
int in_one_process(const char* program, const std::function<int()>& body);

// Returns the seed of the first rank, which may have taken it from its clock; `own` in one process.
// Collective.
std::uint64_t seed_of_all(std::uint64_t own);

// Returns the ranks inside of with_ranks, and null in a program that is one process.
distributed::Communicator* ranks();

}  // namespace tessera::tools::internal
