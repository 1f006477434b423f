#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::tools {

// The work that is done for each problem of a batch.
enum class BatchMode { Correctness, Performance, Plan, List };

// The outcome of one problem.
enum class BatchStatus {
  Passed,
  Failed,            // a result is wrong, or there was an internal error
  Mistrusted,        // right, but more than nine tenths of the outputs have no term to check
  Skipped,           // nothing fits, according to the planner
  InvalidArguments,  // the options describe no problem, or a file cannot be read
  Listed
};

// The result of one problem.
struct BatchResult {
  BatchStatus status = BatchStatus::Listed;
  std::int64_t cycles = 0, planned_cycles = 0;       // modelled
  std::int64_t sparse_cycles = 0, dense_cycles = 0;  // of both forms of R; 0: not compared
  double milliseconds = 0;        // measured, for planning, encoding, running and checking
  std::string message;            // the reason if it is not Passed
  double limit_milliseconds = 0;  // the limit that stopped it; 0: none did
};

// Runs one problem. Errors of the problem are reported in the result and not thrown. A problem that
// has taken `limit_milliseconds` (0: no limit) begins no further step and is Skipped.
BatchResult run_problem(const std::vector<std::string>& words, BatchMode mode,
                        double limit_milliseconds = 0);

}  // namespace tessera::tools
