#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

// Reads the problems of a file, one per line, as words. A line with --batch FILE includes another
// file, whose path is relative to this one, up to 8 levels deep. Other options on a line with
// --batch or --reset become defaults: they apply to every later problem, also in included files,
// that does not give them itself. --reset clears the defaults. Throws Error{BadInput} as for any
// file of options, and beyond 2^20 lines or 2^21 words of all problems, each counted as often as
// its file is included.
std::vector<std::vector<std::string>> read_batch(const std::string& path);

// Returns a command that runs the same problem alone, quoted for a shell.
std::string repro_line(const std::vector<std::string>& words);

// Runs one problem. Errors of the problem are reported in the result and not thrown. A problem that
// has taken `limit_milliseconds` (0: no limit) begins no further step and is Skipped.
BatchResult run_problem(const std::vector<std::string>& words, BatchMode mode,
                        double limit_milliseconds = 0);

// Returns a line such as "3 PASSED cycles 1577 planned 1559 ms 2.4 : sparse_fc_layer ...", with the
// message of the result.
std::string to_text(const BatchResult& result, std::int64_t number, const std::string& repro);

// A file of JSON lines with the results of this run and of earlier ones, by problem and mode.
class BatchResults {
 public:
  // Reads the file. With an empty path nothing is stored. An incomplete last line is ignored;
  // throws Error{BadInput} with the line number for any other line that cannot be read.
  explicit BatchResults(std::string path);

  // Returns the stored result. Returns no value if there is none, or if it was stopped by a smaller
  // limit than this one (0: no limit).
  std::optional<BatchResult> find(const std::string& repro, BatchMode mode,
                                  double limit_milliseconds = 0) const;

  // Stores a result.
  void add(const std::string& repro, BatchMode mode, const BatchResult& result);

 private:
  std::string path_;
  bool needs_line_end_ = false;
  std::map<std::pair<std::string, std::string>, BatchResult> known_;
};

// The number of problems with each status, and the cycles of those that were compared with
// dense.
class BatchSummary {
 public:
  void add(const BatchResult& result);
  std::int64_t all() const;
  std::int64_t count(BatchStatus status) const {
    const auto found = counts_.find(status);
    return found == counts_.end() ? 0 : found->second;
  }

  // Returns in how many of the problems that were compared sparse costs fewer cycles, and the
  // ratio of all of them together. Empty if none was compared.
  std::string verdict() const;

 private:
  std::map<BatchStatus, std::int64_t> counts_;
  std::int64_t compared_ = 0, paying_ = 0, sparse_cycles_ = 0, dense_cycles_ = 0;
};

// Returns a line such as "tests:9 passed:6 skipped:1 mistrusted:1 invalid_arguments:0 failed:1
// listed:0", and the verdict.
std::string to_text(const BatchSummary& summary);

}  // namespace tessera::tools
