#include "tessera/tools/commands/batch.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {
namespace {

constexpr double kTrust = 0.9;  // largest share of outputs without a term

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

BatchResult run_checked(const std::vector<std::string>& words, BatchMode mode,
                        double limit_milliseconds) {
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

}  // namespace

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

}  // namespace tessera::tools
