#include "tessera/tools/commands/batch_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "tessera/base/append_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/study/tables.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {
namespace {

using Json = json::Value;

const json::Names<BatchStatus> kStatuses = {
    {BatchStatus::Passed, "PASSED"},         {BatchStatus::Skipped, "SKIPPED"},
    {BatchStatus::Mistrusted, "MISTRUSTED"}, {BatchStatus::InvalidArguments, "INVALID_ARGUMENTS"},
    {BatchStatus::Failed, "FAILED"},         {BatchStatus::Listed, "LISTED"}};

std::string name_of(BatchStatus status) {
  return std::ranges::find(kStatuses, status, &std::pair<BatchStatus, std::string>::first)->second;
}

std::string name_of(BatchMode mode) {
  constexpr const char* kNames[] = {"correctness", "performance", "plan", "list"};
  return kNames[std::size_t(mode)];
}

// Calls fields(key, figure, legal values) for every figure of a result, as files and CSV have them.
void describe(auto&& fields, auto& result) {
  constexpr json::WholeRange kCycles{INT64_MIN, INT64_MAX};
  fields("status", result.status, kStatuses);
  fields("cycles", result.cycles, kCycles);
  fields("planned_cycles", result.planned_cycles, kCycles);
  fields("sparse_cycles", result.sparse_cycles, kCycles);
  fields("dense_cycles", result.dense_cycles, kCycles);
  fields("milliseconds", result.milliseconds);
  fields("message", result.message);
  fields("limit_milliseconds", result.limit_milliseconds);
}

// Calls add(key, value) for every figure of a result, with the name of its status.
template <class Add>
void list(const BatchResult& result, const Add& add) {
  describe(
      [&]<class T>(const char* key, const T& figure, const auto&...) {
        if constexpr (std::same_as<T, BatchStatus>)
          add(key, name_of(figure));
        else
          add(key, figure);
      },
      result);
}

}  // namespace

std::string to_text(const BatchResult& result, std::int64_t number, const std::string& repro) {
  std::string text =
      fmt::format("{} {} cycles {} planned {} ms {:.1f} : {}\n", number, name_of(result.status),
                  result.cycles, result.planned_cycles, result.milliseconds, repro);
  if (!result.message.empty()) text += "  " + result.message.substr(0, 300) + "\n";
  return text;
}

std::string batch_csv_heading() {
  std::string heading = "problem";
  list({}, [&](const char* key, const auto&) { heading += fmt::format(",{}", key); });
  return heading + ",command\n";
}

std::string to_csv(const BatchResult& result, std::int64_t number, const std::string& repro) {
  std::vector<study::Cell> row = {number};
  list(result, [&](const char*, const auto& figure) { row.emplace_back(figure); });
  row.emplace_back(repro);
  return study::csv_line(row);
}

BatchResults::BatchResults(std::string path) : path_(std::move(path)) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path_, unknown)) return;  // new, a device or no file
  const std::string text = load_text(path_);
  needs_line_end_ = !text.empty() && text.back() != '\n';
  std::istringstream lines(text);
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool is_cut_off = lines.eof() && needs_line_end_;
    try {
      const Json stored = json::parse_own(line);
      json::ObjectReader fields(stored, {"the line", ""});
      std::string repro, mode;
      fields("repro", repro);
      fields("mode", mode);
      BatchResult result;
      describe(fields, result);
      known_[{repro, mode}] = std::move(result);
    } catch (const std::exception& error) {
      if (!is_cut_off)
        throw Error(ErrorCode::BadInput,
                    fmt::format("{}:{}: this is not a result of tessera bench: {}", path_, number,
                                error.what()));
    }
  }
}

std::optional<BatchResult> BatchResults::find(const std::string& repro, BatchMode mode,
                                              double limit_milliseconds) const {
  const auto found = known_.find({repro, name_of(mode)});
  if (found == known_.end()) return std::nullopt;
  const double had = found->second.limit_milliseconds;
  if (had > 0 && (limit_milliseconds == 0 || limit_milliseconds > had)) return std::nullopt;
  return found->second;
}

void BatchResults::add(const std::string& repro, BatchMode mode, const BatchResult& result) {
  if (path_.empty()) return;
  Json line = {{"repro", repro}, {"mode", name_of(mode)}};
  list(result, [&](const char* key, const auto& figure) { line[key] = figure; });
  append_file(path_, (needs_line_end_ ? "\n" : "") + line.dump() + "\n");
  needs_line_end_ = false;
}

void BatchSummary::add(const BatchResult& result) {
  ++counts_[result.status];
  if (result.sparse_cycles == 0 || result.dense_cycles == 0) return;
  ++compared_;
  paying_ += result.sparse_cycles < result.dense_cycles ? 1 : 0;
  sparse_cycles_ += result.sparse_cycles;
  dense_cycles_ += result.dense_cycles;
}

std::string BatchSummary::verdict() const {
  if (compared_ == 0) return {};
  const bool wins = sparse_cycles_ < dense_cycles_;
  const double more = double(dense_cycles_) / double(sparse_cycles_);
  return fmt::format(
      "{}sparse pays in {} of {} problems; all together {} cycles, {} dense ({}) "
      "(modelled)",
      wins ? "" : "dense wins: ", paying_, compared_, fmt::group_digits(sparse_cycles_),
      wins ? fmt::format("{:.1f}x faster than", more) : fmt::format("{:.1f}x as many as", 1 / more),
      fmt::group_digits(dense_cycles_));
}

std::int64_t BatchSummary::all() const {
  std::int64_t all = 0;
  for (const auto& [status, count] : counts_) all += count;
  return all;
}

int BatchSummary::exit_code() const {
  if (count(BatchStatus::Failed) + count(BatchStatus::InvalidArguments) > 0) return kCheckFailed;
  const std::int64_t skipped = count(BatchStatus::Skipped);
  return skipped > 0 && skipped == all() ? kNothingFits : kOk;
}

std::string to_text(const BatchSummary& summary) {
  std::string counts;
  for (const auto& [status, name] : kStatuses) {
    std::string lower = name;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    counts += fmt::format(" {}:{}", lower, summary.count(status));
  }
  const std::string verdict = summary.verdict();
  return fmt::format("tests:{}{}\n{}", summary.all(), counts,
                     verdict.empty() ? ""
                                     : wrapped("verdict    " + verdict + "\n",
                                               /*indented=*/4, /*flush=*/11));
}

}  // namespace tessera::tools
