#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tessera/tools/commands/batch.hpp"

namespace tessera::tools {

// Returns a line such as "3 PASSED cycles 1577 planned 1559 ms 2.4 : sparse_fc_layer ...", with the
// message of the result.
std::string to_text(const BatchResult& result, std::int64_t number, const std::string& repro);

// Returns the heading of the CSV of results, and the row of one.
std::string batch_csv_heading();
std::string to_csv(const BatchResult& result, std::int64_t number, const std::string& repro);

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

  // Returns the exit code of the program: a problem failed or was none, nothing fitted, or success.
  int exit_code() const;

 private:
  std::map<BatchStatus, std::int64_t> counts_;
  std::int64_t compared_ = 0, paying_ = 0, sparse_cycles_ = 0, dense_cycles_ = 0;
};

// Returns a line such as "tests:9 passed:6 skipped:1 mistrusted:1 invalid_arguments:0 failed:1
// listed:0", and the verdict.
std::string to_text(const BatchSummary& summary);

}  // namespace tessera::tools
