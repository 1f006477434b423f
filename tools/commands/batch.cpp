#include "tessera/tools/commands/batch.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "tessera/base/append_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/wrapped.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/manual.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepestFile = 8;
// Limits of a batch with the files that it includes. A file of a few kilobytes can include others
// so often that they would take all memory.
constexpr std::int64_t kMostLines = std::int64_t{1} << 20, kMostWordsInAll = std::int64_t{1} << 21;
constexpr double kTrust = 0.9;  // largest share of outputs without a term

constexpr std::pair<BatchStatus, const char*> kStatuses[] = {
    {BatchStatus::Passed, "PASSED"},         {BatchStatus::Skipped, "SKIPPED"},
    {BatchStatus::Mistrusted, "MISTRUSTED"}, {BatchStatus::InvalidArguments, "INVALID_ARGUMENTS"},
    {BatchStatus::Failed, "FAILED"},         {BatchStatus::Listed, "LISTED"}};

const char* name_of(BatchStatus status) {
  for (const auto& [one, name] : kStatuses)
    if (one == status) return name;
  return "";
}

std::string name_of(BatchMode mode) {
  constexpr const char* kNames[] = {"correctness", "performance", "plan", "list"};
  return kNames[std::size_t(mode)];
}

using Words = std::vector<std::string>;

std::string option_name(const std::string& word) { return word.substr(0, word.find('=')); }

// Returns `words`, preceded by the options of `defaults` that `words` does not give itself.
Words with_defaults(const Words& defaults, const Words& words) {
  Words all;
  std::set<std::string> given;
  for (const std::string& word : words) given.insert(option_name(word));
  bool is_kept = true;
  for (const std::string& word : defaults) {
    if (word.starts_with("-")) is_kept = !given.contains(option_name(word));
    if (is_kept) all.push_back(word);
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// Reads files line by line, with the files that they include.
class BatchReader {
 public:
  void add_file(const std::string& path, int depth) {
    if (depth == kDeepestFile)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: problem files may include other files at most {} levels deep",
                              path, kDeepestFile));
    check_limits(path);  // an empty file is a line, too: others may include it often
    std::istringstream lines(load_text(path));
    std::int64_t number = 0;
    for (std::string line; std::getline(lines, line); check_limits(path))
      add_line(split_words(line, fmt::format("{}:{}", path, ++number)), path, depth);
  }

  std::vector<Words> problems;

 private:
  void check_limits(const std::string& path) {
    ++lines_;
    if (lines_ > kMostLines || words_ > kMostWordsInAll)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: problem files may have at most {} lines and {} words together, "
                              "each as often as it is included; split them",
                              path, kMostLines, kMostWordsInAll));
  }
  void add_line(const Words& words, const std::string& path, int depth) {
    const auto is_setting = [](const std::string& word) {
      return word == "--reset" || option_name(word) == "--batch";
    };
    if (std::any_of(words.begin(), words.end(), is_setting))
      set(words, path, depth);
    else if (!words.empty())
      words_ += std::ssize(problems.emplace_back(with_defaults(defaults_, words)));
  }

  // Options before a --batch on the same line already apply to the included file.
  void set(const Words& words, const std::string& path, int depth) {
    Words options;
    const auto hold = [&] {
      defaults_ = with_defaults(defaults_, std::exchange(options, {}));
      // Every line of problems takes them again.
      words_ += std::ssize(defaults_);
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--reset") {
        options.clear(), defaults_.clear();
        continue;
      }
      if (option_name(words[i]) != "--batch") {
        options.push_back(words[i]);
        continue;
      }
      hold();
      const std::size_t equals = words[i].find('=');
      if (equals == std::string::npos && i + 1 == words.size())
        throw Error(ErrorCode::BadInput, path + ": --batch needs a file name");
      const std::string file =
          equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
      add_file((std::filesystem::path(path).parent_path() / file).string(), depth + 1);
    }
    hold();
  }

  Words defaults_;
  std::int64_t lines_ = 0, words_ = 0;
};

// Parses the words as sparse_fc_layer does. Throws Error{InvalidArgument} with the same message.
Arguments arguments_of(const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App app("", "sparse_fc_layer");
  add_run_options(app, arguments);
  try {
    std::vector<std::string> expanded = expand_words(app, words);
    std::reverse(expanded.begin(), expanded.end());
    app.parse(std::move(expanded));
    refuse_empty_values(app);
    refuse_written_paths(app, "a problem of a batch writes no files; omit the option");
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::InvalidArgument, error.what());
  }
  arguments->quiet = true;
  return *arguments;
}

void mistrust(double empty_outputs, BatchResult& result) {
  result.status = BatchStatus::Mistrusted;
  result.message = fmt::format("{:.0f} % of the outputs have no weights", 100 * empty_outputs);
}

void add_verdict(Pass pass, const std::optional<verify::Verdict>& verdict, BatchResult& result) {
  if (verdict && !verdict->ok())
    result.message += to_string(pass) + " " + to_string(*verdict) + "; ";
}

BatchStatus status_of(ErrorCode code) {
  if (code == ErrorCode::NoSolution || code == ErrorCode::LimitExceeded)
    return BatchStatus::Skipped;
  return code == ErrorCode::Internal ? BatchStatus::Failed : BatchStatus::InvalidArguments;
}

// Sets the cycles of both forms of R if the run has been compared with the other one.
void add_comparison(const report::LayerReport& report, BatchResult& result) {
  const auto comparison = report::dense_comparison(report);
  if (!comparison || !comparison->has_sparse() || !comparison->has_dense()) return;
  result.sparse_cycles = std::llround(comparison->sparse_cost());
  result.dense_cycles = std::llround(comparison->dense_cost());
}

// Runs a problem on this computer; its result has no cycles.
BatchResult run_host_problem(const Arguments& a, BatchMode mode) {
  const HostRun run = ranks() == nullptr ? run_on_host(a) : ranks()->run(a, "tessera bench");
  BatchResult result;
  result.status = run.report.ok() ? BatchStatus::Passed : BatchStatus::Failed;
  if (run.report.ok() && mode == BatchMode::Correctness && run.empty_outputs > kTrust)
    mistrust(run.empty_outputs, result);
  for (const report::HostPassReport& pass : run.report.passes)
    add_verdict(pass.pass, pass.verdict, result);
  return result;
}

BatchResult run_checked(const Words& words, BatchMode mode, double limit_milliseconds) {
  Arguments a = arguments_of(words);
  a.limit_milliseconds = limit_milliseconds;
  BatchResult result;
  if (mode == BatchMode::List) return result;
  if (mode == BatchMode::Performance) a.stop = std::min(a.stop, StopAfter::Passes);
  if (mode == BatchMode::Plan) a.stop = StopAfter::Plan;
  if (a.pod.is_used())
    throw Error(ErrorCode::InvalidArgument,
                "a problem of a batch runs on one device; leave out --devices and --pod");
  if (is_host(a) || ranks() != nullptr) return run_host_problem(a, mode);
  const LayerRun run = run_layer(a);
  result.status = run.report.ok() ? BatchStatus::Passed : BatchStatus::Failed;
  result.planned_cycles = run.report.plan.cost.cycles.value;
  for (const report::PassReport& pass : run.report.passes) {
    result.cycles += pass.ledger.total().value;
    add_verdict(pass.pass, pass.verdict, result);
  }
  if (!run.context.is_partial) add_comparison(run.report, result);
  const bool is_checked = mode == BatchMode::Correctness && !run.report.passes.empty();
  if (run.report.ok() && is_checked && run.empty_outputs > kTrust)
    mistrust(run.empty_outputs, result);
  if (run.context.is_partial && result.status != BatchStatus::Failed) {
    result.status = BatchStatus::Skipped;
    result.limit_milliseconds = limit_milliseconds;
    result.message = fmt::format("stopped after --max-ms-per-prb {}", limit_milliseconds);
  }
  return result;
}

BatchResult result_of(const Json& line) {
  BatchResult result;
  const std::string status = line.at("status");
  bool found = false;
  for (const auto& [one, name] : kStatuses)
    if (status == name) result.status = one, found = true;
  if (!found) throw Error(ErrorCode::BadInput, "status " + status + " is not known");
  result.cycles = line.at("cycles");
  result.planned_cycles = line.at("planned_cycles");
  result.sparse_cycles = line.value("sparse_cycles", std::int64_t{0});
  result.dense_cycles = line.value("dense_cycles", std::int64_t{0});
  result.milliseconds = line.at("milliseconds");
  result.message = line.at("message");
  result.limit_milliseconds = line.value("limit_milliseconds", 0.0);
  return result;
}

}  // namespace

std::vector<std::vector<std::string>> read_batch(const std::string& path) {
  BatchReader reader;
  reader.add_file(path, 0);
  return std::move(reader.problems);
}

std::string repro_line(const std::vector<std::string>& words) {
  std::string line = "sparse_fc_layer";
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) || std::strchr("-_=./:,@+%", c) != nullptr;
    });
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += is_plain ? " " + word : " '" + quoted + "'";
  }
  return line;
}

BatchResult run_problem(const std::vector<std::string>& words, BatchMode mode,
                        double limit_milliseconds) {
  const auto start = std::chrono::steady_clock::now();
  BatchResult result;
  try {
    result = run_checked(words, mode, limit_milliseconds);
  } catch (const FileTooLarge& error) {
    if (ranks() != nullptr) throw;
    result.status = BatchStatus::InvalidArguments;
    result.message = error.what();
  } catch (const Error& error) {
    if (ranks() != nullptr) throw;  // the other ranks may be waiting for this one
    result.status = status_of(error.code());
    result.message = error.what();
  } catch (const std::exception& error) {
    if (ranks() != nullptr) throw;
    result.status = BatchStatus::Failed;
    result.message = error.what();
  }
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::string to_text(const BatchResult& result, std::int64_t number, const std::string& repro) {
  std::string text =
      fmt::format("{} {} cycles {} planned {} ms {:.1f} : {}\n", number, name_of(result.status),
                  result.cycles, result.planned_cycles, result.milliseconds, repro);
  if (!result.message.empty()) text += "  " + result.message.substr(0, 300) + "\n";
  return text;
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
      const Json json = Json::parse(line);
      known_[{json.at("repro"), json.at("mode")}] = result_of(json);
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
  const std::string line = Json{{"repro", repro},
                                {"mode", name_of(mode)},
                                {"status", name_of(result.status)},
                                {"cycles", result.cycles},
                                {"planned_cycles", result.planned_cycles},
                                {"sparse_cycles", result.sparse_cycles},
                                {"dense_cycles", result.dense_cycles},
                                {"milliseconds", result.milliseconds},
                                {"message", result.message},
                                {"limit_milliseconds", result.limit_milliseconds}}
                               .dump(-1, ' ', false, Json::error_handler_t::replace);
  append_file(path_, (needs_line_end_ ? "\n" : "") + line + "\n");
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
