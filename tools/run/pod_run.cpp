#include "tessera/tools/run/pod_run.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/pod/plan_pod.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/study/pod_run.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/study_output.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/run_passes.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
namespace {

using study::PodRun;

pod::PodPlan plan_of(const Arguments& a, const Problem& problem, const Weights& weights) {
  planner::PlanCache cache(a.plan_cache);
  pod::PodPlan plan = pod_plan_of(a, a.pod, problem, make_options(a, {}), cache);
  return a.plan_file.empty() ? pod::with_pattern(plan, weights.matrices(), &cache) : plan;
}

// A layer on a pod, of which this process runs all devices or those of its split.
class PodTarget final : public PassTarget {
 public:
  PodTarget(pod::PodLayer& layer, const Weights& weights, const Arguments& a, PodRun& run)
      : PassTarget(layer, weights), layer_(layer), arguments_(a), run_(run) {}

  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun& fault) override {
    pod::DeviceOptions devices;
    devices.devices_simulated = arguments_.devices_simulated;
    if (ranks() != nullptr) ranks()->share(devices);
    if (fault.request != nullptr)
      devices.fault = pod::DeviceFault{fault.request->device.value_or(0), fault.request->fault};
    devices.struck = fault.struck;
    layer::PassOptions with = options;
    with.target = &devices;
    return run_pass(layer_, pass, operands, with, ledger_);
  }

  void take(PassOutcome&& outcome) override {
    run_.passes.push_back({std::move(ledger_), std::move(outcome.verdict), std::move(outcome.fault),
                           std::move(outcome.notes)});
  }

 private:
  pod::PodLayer& layer_;
  const Arguments& arguments_;
  PodRun& run_;
  pod::PodLedger ledger_;  // of the last run
};

void encode_and_run(const Arguments& a, const Weights& weights, PodRun& run, Files& files,
                    Progress& progress) {
  progress.set("encoding");
  const auto executor = make_executor(a.threads);
  const bool isolate = a.isolate || a.fault;
  pod::PodLayer layer(
      run.plan, isolate ? device::ExchangeMode::Isolate : device::ExchangeMode::Share,
      a.devices_side_by_side ? pod::DeviceOrder::SideBySide : pod::DeviceOrder::OneAfterAnother,
      *executor);
  if (const auto misfit = layer.set_weights(weights.matrices()))
    throw Error(ErrorCode::NoSolution,
                "the pattern does not fit the buckets of " + misfit->message);
  run.places = layer.places();
  for (std::size_t d = 0; d < run.places.size(); ++d) run.memory.push_back(layer.high_water(d));
  if (a.stop < StopAfter::Passes) return;
  const std::string plan = pod::pod_plan_to_json(run.plan);
  if (Ranks* const all = ranks()) all->require_same("plan", std::as_bytes(std::span(plan)));
  PodTarget target(layer, weights, a, run);
  const Problem& problem = run.plan.problem;
  const std::int64_t ran = run_passes(target, problem, weights, a, files, progress);
  run.is_partial = ran < std::ssize(passes_of(problem)) || is_interrupted();
}

void write_files(const Arguments& a, const PodRun& run, Files files, const study::Report& report) {
  if (!a.trace.empty()) write_results(a.trace, study::to_trace(run));
  if (a.output_dir.empty()) return;
  files.emplace_back("plan.json", pod::pod_plan_to_json(run.plan));
  files.emplace_back("report.json", study::to_json(report));
  write_folder(a.output_dir, files);
}

}  // namespace

int run_pod_and_print(const Arguments& given, const char* program) {
  Arguments a = given;
  Ranks* const all = ranks();
  if (all != nullptr) {
    all->require_same_options(a);
    a.seed = all->seed_of_all(a.seed);
  }
  Progress progress(a.quiet || !is_first_rank());
  progress.set("reading");
  const Weights weights = make_weights(a);
  a.batch_size = batch_of(a, weights);
  const Problem problem = make_problem(a, weights);
  if (all != nullptr) {
    all->require_same_problem(problem);
    all->require_same_weights(weights.matrices());
  }
  progress.set("planning");
  PodRun run{plan_of(a, problem, weights), weights.source};
  Files files;
  encode_and_run(a, weights, run, files, progress);
  progress.hide();
  if (!is_first_rank()) return run.ok() ? int(kOk) : int(kCheckFailed);
  const study::Report report = study::report_of(run, program);
  write_files(a, run, std::move(files), report);
  const std::string text = a.quiet ? std::string() : study::to_text(run, a.report_plan);
  const int exit = write_study({a.json, a.csv, a.html}, report, text);
  return run.ok() ? exit : int(kCheckFailed);
}

}  // namespace tessera::tools
