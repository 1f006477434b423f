#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::bench {

// The end of a program that ran as a process of its own.
struct ProgramRun {
  int exit_code = 0;
  double seconds = 0;     // wall time
  double peak_bytes = 0;  // the most resident memory
};

// Runs a program and waits for it; `command[0]` is its path. Its output is dropped. If
// `most_bytes_of_addresses` is not 0, the program cannot map more memory than that (`ulimit -v`).
// A process starts with the peak of the one that starts it, so the caller must be small.
ProgramRun run_program(const std::vector<std::string>& command,
                       std::int64_t most_bytes_of_addresses = 0);

// Returns how many bytes this process has read from files and pipes so far.
std::int64_t bytes_read();

}  // namespace tessera::bench
