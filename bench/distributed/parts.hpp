#pragma once

#include <string>

#include "tessera/distributed/communicator.hpp"

namespace tessera::bench {

// The parts of distributed_bench that several processes run. Rank 0 prints; all return true if
// every bar was met. `turns` is the number of measurements of which the median is taken.

// Returns the longest of the seconds that the ranks pass.
double slowest(distributed::Communicator& ranks, double seconds);

// Two ranks of one thread beside one rank of one and of two threads.
bool run_rank_speed(distributed::Communicator& ranks, int turns);

// Sums in a fixed tree beside those of MPI.
bool run_tree_sums(distributed::Communicator& ranks, int turns);

// Results over 1 to 8 ranks that are threads, and the bytes that each receives.
bool run_bits_and_bytes();

// Writes the files that run_rank_files reads, into a folder.
void write_rank_files(const std::string& folder);

// The memory that each rank takes to read its rows of these files, beside the bytes of its rows.
bool run_rank_files(distributed::Communicator& ranks, const std::string& folder);

}  // namespace tessera::bench
