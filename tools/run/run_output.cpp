#include <fmt/format.h>

#include <string>
#include <utility>

#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/tools/run/pod_run.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {

namespace {

std::string cycles_text(const LayerRun& run) {
  std::string text;
  for (const report::PassReport& pass : run.report.passes) {
    const std::string name = to_string(pass.pass);
    if (run.with_cycles)
      text += fmt::format("{:<8}{:>12} cycles (modelled)\n", name, pass.ledger.total().value);
    if (!run.with_steps) continue;
    text += fmt::format("{:<8}{:<23}{:<9}{:>10}{:>10}{:>9}{:>14}\n", name, "step", "kind", "cycles",
                        "overhead", "slowest", "bytes moved");
    for (const device::StepRecord& step : pass.ledger.steps)
      text += fmt::format("{:8}{:<23}{:<9}{:>10}{:>10}{:>9}{:>14}\n", "", to_string(step.phase),
                          to_string(step.kind), step.cycles.value, step.overhead.value,
                          step.critical_tile.value, step.moved.value);
  }
  return text.empty() ? text : "\n" + text;
}

std::string page_of(const LayerRun& run) {
  report::ReportContext context = run.context;
  context.with_tiles = true;
  PageExtras extras = run.page;
  extras.date = date_of_today();
  return report_page(to_json(run.report, context), extras);
}

std::string page_of(const HostRun& run) {
  return report_page(to_json(run.report, run.context), {.date = date_of_today()});
}

template <class Run>
void write_files(const Arguments& a, const Run& run) {
  if constexpr (requires { run.outputs; })
    for (const auto& [path, bytes] : run.outputs) write_results(path, bytes);
  if (!a.html.empty()) write_results(a.html, page_of(run));
  if (a.output_dir.empty()) return;
  Files files = run.files;
  files.emplace_back("report.json", to_json(run.report, run.context));
  files.emplace_back("report.csv", report::to_csv(run.report, run.context));
  if (can_make_pages()) files.emplace_back("report.html", page_of(run));
  write_folder(a.output_dir, files);
}

template <class Run>
int print_and_write(const Arguments& a, const Run& run) {
  const EndsByItself reporting;
  if (a.json) {
    print_results(to_json(run.report, run.context));
  } else if (a.csv) {
    print_results(report::to_csv(run.report, run.context));
  } else if (!a.quiet) {
    print_text(to_text(run));
  }
  write_files(a, run);
  return exit_code_of(run);
}

int run_and_print_here(const Arguments& a, const char* program) {
  if (ranks() == nullptr) catch_interrupts();  // mpirun ends its ranks itself
  if (a.verbose)
    for (const auto& [option, value] : a.configuration)
      print_message(fmt::format("{}: --{} {}\n", program, option, value));
  if (a.pod.is_used()) return run_pod_and_print(a, program);
  if (Ranks* const all = ranks()) {
    const HostRun run = all->run(a, program);
    return is_first_rank() ? print_and_write(a, run) : kOk;
  }
  if (is_host(a)) return print_and_write(a, run_on_host(a, program));
  return print_and_write(a, run_layer(a, program));
}

}  // namespace

ExitCode exit_code_of(const LayerRun& run) {
  if (!run.report.ok()) return kCheckFailed;
  return run.context.is_partial ? ExitCode(interrupted_exit_code()) : kOk;
}

int run_and_print(const Arguments& a, const char* program) {
  return with_ranks(program, a.timeout_seconds, [&] { return run_and_print_here(a, program); });
}

std::string to_text(const LayerRun& run) {
  std::string text;
  for (const std::string& note : run.context.notes) text += fmt::format("note      {}\n", note);
  text += report::to_text(run.report) + run.extras + cycles_text(run);
  if (run.context.is_partial)
    text += fmt::format("PARTIAL: {} of {} passes ran\n", run.report.passes.size(),
                        passes_of(run.report.problem).size());
  return text;
}

}  // namespace tessera::tools
