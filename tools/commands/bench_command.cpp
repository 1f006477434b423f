#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/tools/commands/batch.hpp"
#include "tessera/tools/commands/batch_file.hpp"
#include "tessera/tools/commands/batch_results.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/ranks.hpp"

namespace tessera::tools {
namespace {

struct BenchArguments {
  std::vector<std::string> files, problem;
  BatchMode mode = BatchMode::Correctness;
  std::string shard = "1/1", output;
  std::int64_t start = 0;
  double limit_milliseconds = 0;
  double timeout_seconds = 300;
  bool quiet = false, csv = false;
};

// Reads "i/n" with 1 <= i <= n.
std::pair<std::int64_t, std::int64_t> shard_of(std::string text) {
  std::replace(text.begin(), text.end(), '/', ',');
  const auto pair = parse_pair(text);
  if (!pair || text.find(',') == text.npos || pair->first < 1 || pair->first > pair->second)
    throw Error(ErrorCode::InvalidArgument,
                "--shard must be i/n with 1 <= i <= n, for example 2/4");
  return *pair;
}

int bench(const BenchArguments& a) {
  if (ranks() != nullptr && !a.output.empty())
    throw Error(ErrorCode::InvalidArgument,
                "--output is for one process; start the program without mpirun");
  std::vector<std::vector<std::string>> problems;
  for (const std::string& file : a.files)
    for (auto& words : read_batch(file)) problems.push_back(std::move(words));
  if (!a.problem.empty()) problems.push_back(a.problem);
  const auto [shard, shards] = shard_of(a.shard);
  if (ranks() == nullptr) catch_interrupts();
  BatchResults results(a.output);
  BatchSummary summary;
  Progress progress(a.quiet || ranks() != nullptr);
  if (a.csv) print_results(batch_csv_heading());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (std::int64_t(i) < a.start || std::int64_t(i) % shards != shard - 1) continue;
    if (is_interrupted()) break;
    progress.set("problem " + std::to_string(i), std::int64_t(i), std::ssize(problems));
    const std::string repro = repro_line(problems[i]);
    std::optional<BatchResult> result = results.find(repro, a.mode, a.limit_milliseconds);
    const bool is_old = result.has_value();
    if (!is_old) result = run_problem(problems[i], a.mode, a.limit_milliseconds);
    if (is_interrupted()) break;  // it may be incomplete, so the next call runs it again
    const EndsByItself reporting;
    if (!is_old) results.add(repro, a.mode, *result);
    summary.add(*result);
    progress.hide();
    if (a.csv) {
      print_results(to_csv(*result, std::int64_t(i), repro));
      continue;
    }
    set_results_so_far(to_text(summary));
    if (!a.quiet || result->status == BatchStatus::Failed)
      print_text(to_text(*result, std::int64_t(i), repro));
  }
  const EndsByItself reporting;
  progress.hide();
  a.csv ? print_message(to_text(summary)) : print_text(to_text(summary));
  return is_interrupted() ? interrupted_exit_code() : summary.exit_code();
}

}  // namespace

void add_bench_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "bench",
      "Runs many problems, one per line, each written as options of tessera run. A line --batch "
      "FILE includes another file; '#' starts a comment. Options on a line with --batch or --reset "
      "apply to all problems after it, until the next --reset.");
  command->footer(std::string(kExitCodes) +
                  "\nExamples: tessera bench --mode plan --batch problems.txt --shard 1/4\n"
                  "          tessera bench --batch problems.txt --output results.jsonl");
  const auto a = std::make_shared<BenchArguments>();
  command->add_option("--batch", a->files, "file of problems; may be given more than once")
      ->type_name("FILE");
  static const std::map<std::string, BatchMode> modes{{"correctness", BatchMode::Correctness},
                                                      {"performance", BatchMode::Performance},
                                                      {"plan", BatchMode::Plan},
                                                      {"list", BatchMode::List}};
  auto* mode = command->add_option(
      "--mode", a->mode,
      "work per problem: correctness (run and check), performance (run only), plan (plan and "
      "encode) or list (print the problem only)");
  offer_values(mode, {"correctness", "performance", "plan", "list"})
      ->transform(CLI::CheckedTransformer(modes, CLI::ignore_case).description(""))
      ->type_name("MODE")
      ->default_str("correctness");
  command
      ->add_option(
          "--shard", a->shard,
          "share of the problems to run, as i/n: every n-th problem, starting with the i-th")
      ->capture_default_str();
  require_whole(command->add_option("--start", a->start,
                                    "number of the first problem to run, counted from 0"),
                0, kLargestSize)
      ->capture_default_str();
  require_writable_file(
      *command
           ->add_option("--output", a->output,
                        "file of JSON lines to append the results to; problems that it already has "
                        "are not run again")
           ->type_name("FILE.jsonl"));
  constexpr double kLongest = 1e9;  // 11 days
  require_number(
      command->add_option("--max-ms-per-prb", a->limit_milliseconds,
                          "time limit per problem in milliseconds; a problem that exceeds it stops "
                          "before its next step and is SKIPPED; 0 means no limit"),
      0, kLongest)
      ->capture_default_str();
  auto* quiet = command->add_flag("-q,--quiet", a->quiet, "print only failures and the summary");
  command->add_flag("--csv", a->csv, "print the results as CSV, one row for each problem")
      ->excludes(quiet);
  command->add_option("problem", a->problem, "options of one more problem, after --");
  add_rank_options(*command, a->timeout_seconds);
  command->callback([command, a, &run] {
    if (a->files.empty() && a->problem.empty())
      throw CLI::ValidationError("bench", "give --batch FILE, or a problem after --");
    check_rank_options(*command);
    run = [a] {
      return with_ranks("tessera bench", a->timeout_seconds, [&] { return bench(*a); });
    };
  });
}

}  // namespace tessera::tools
