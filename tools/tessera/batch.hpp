#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera::tools {

// What is done with each problem of a batch.
enum class BatchMode { Correctness, Performance, Plan, List };

enum class BatchStatus {
  Passed,
  Failed,            // a result is wrong, or something of ours broke
  Mistrusted,        // checked and right, but nine tenths of the outputs have no term to get wrong
  Skipped,           // nothing fits, as the planner says
  InvalidArguments,  // no problem at all, or a file that cannot be read
  Listed
};

struct BatchResult {
  BatchStatus status = BatchStatus::Listed;
  std::int64_t cycles = 0, planned_cycles = 0;  // modelled
  double milliseconds = 0;        // measured, of planning, encoding, running, checking
  std::string message;            // why it is not Passed
  double limit_milliseconds = 0;  // that it was cut short by; 0: by none
};

// The problems of a file, a line each, as words. A line with --batch FILE takes in another file,
// relative to this one, 8 deep; --reset forgets the options that held so far. Other options on a
// line with one of the two hold for every problem after it that does not give them itself, also in
// files taken in, until --reset. Error{BadInput} as for any file of options.
std::vector<std::vector<std::string>> read_batch(const std::string& path);

// A command that runs the same problem alone, quoted for a shell.
std::string repro_line(const std::vector<std::string>& words);

// Never throws for a problem of its own; what it threw is in the result. A problem that has taken
// `limit_milliseconds` (0: no limit) begins no further step and is Skipped.
BatchResult run_problem(const std::vector<std::string>& words, BatchMode mode,
                        double limit_milliseconds = 0);

// "3 PASSED cycles 1577 planned 1559 ms 2.4 : sparse_fc_layer ...", and why.
std::string to_text(const BatchResult& result, std::int64_t number, const std::string& repro);

// The results of earlier runs by problem and mode, and those of this one, in a file of JSON lines.
class BatchResults {
 public:
  // An empty path keeps nothing. A last line that was cut off is not counted; another line that
  // cannot be read is Error{BadInput} with its number.
  explicit BatchResults(std::string path);
  // None for a problem that was cut short by a smaller limit than this one (0: no limit).
  std::optional<BatchResult> find(const std::string& repro, BatchMode mode,
                                  double limit_milliseconds = 0) const;
  void add(const std::string& repro, BatchMode mode, const BatchResult& result);

 private:
  std::string path_;
  bool needs_line_end_ = false;
  std::map<std::pair<std::string, std::string>, BatchResult> known_;
};

class BatchSummary {
 public:
  void add(BatchStatus status) { ++counts_[status]; }
  std::int64_t count(BatchStatus status) const {
    const auto found = counts_.find(status);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::map<BatchStatus, std::int64_t> counts_;
};
// "tests:9 passed:6 skipped:1 mistrusted:1 invalid_arguments:0 failed:1 listed:0"
std::string to_text(const BatchSummary& summary);

}  // namespace tessera::tools
