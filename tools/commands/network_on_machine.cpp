#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/report/network_report.hpp"
#include "tessera/report/network_steps.hpp"
#include "tessera/report/trace.hpp"
#include "tessera/tools/commands/network_buckets.hpp"
#include "tessera/tools/commands/network_run.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/train/network_file.hpp"
#include "tessera/train/pattern_update.hpp"

namespace tessera::tools {
namespace {

using Json = json::Value;

// The result of a run: its report, and the texts that options ask for.
struct NetworkRun {
  report::NetworkReport report;
  std::string program, trace, steps;  // of the last step
  std::string bucket_bytes;           // for --save-buckets
  device::HostLink link;
  train::PatternUpdate patterns;
};

// Encodes the weights of all layers, or takes those of sparse layers from --buckets. Returns the
// seconds that this takes.
double give_weights(runtime::Network& network, const planner::NetworkFile& file,
                    const NetworkArguments& a) {
  NetworkBuckets parts;
  if (!a.buckets.empty()) parts = read_network_buckets(a.buckets, file.spec);
  double encoding = 0;
  for (std::int64_t l = 0; l < std::ssize(file.weights); ++l) {
    if (!parts.empty() && !file.spec.layers[std::size_t(l)].dense) {
      const Stopwatch watch;
      restore_layer(network, l, *parts[std::size_t(l)], a.buckets);
      encoding += watch.seconds();
      continue;
    }
    const sparse::Csr<float> weights = train::weights_of(file, l, a.seed);
    const Stopwatch watch;
    const auto misfit = network.set_weights(l, weights);
    encoding += watch.seconds();
    if (misfit)
      throw Error(ErrorCode::NoSolution,
                  fmt::format("the weights of layer {} do not fit their buckets: {}; raise "
                              "metaInfoBucketOversizeProportion with --matmul-options",
                              l + 1, misfit->message));
  }
  return encoding;
}

NetworkRun run_network(const NetworkArguments& a) {
  planner::NetworkFile file = train::read_network(load_text(a.file), a.file);
  if (a.recompute) train::recompute_every_second(file.spec);
  const device::Machine machine = make_machine(a.layer);
  Progress progress(a.output.json);
  progress.set("planning the network");
  const auto plan = planner::plan_network(file.spec, machine, make_options(a.layer, {}));
  progress.set("building its program");
  const auto executor = make_executor(a.threads);
  const auto mode = a.isolate ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
  runtime::Network network(file.spec, plan.plans, machine, mode, *executor);
  NetworkRun run;
  run.link = device::load_host_link(a.layer.machine);
  run.patterns = train::new_patterns(network, run.link, give_weights(network, file, a));
  if (!a.save_buckets.empty()) run.bucket_bytes = network_bucket_file(network);
  const train::DrawnBatch batch(file.spec, train::batch_seed(a.seed));
  runtime::NetworkCost cost;
  device::TileLedger tiles;
  runtime::TilePass options;
  std::vector<float> losses;
  for (std::int64_t step = 0; step < a.steps; ++step) {
    progress.set("running", step, a.steps);
    const bool keeps = !a.trace.empty() && step + 1 == a.steps;
    options.tiles.tiles = keeps ? &tiles : nullptr;
    if (!network.run(batch.view(), options, cost)) break;
    if (file.spec.loss) losses.push_back(network.loss());
  }
  progress.set("planning the dense network");
  run.report = report::network_report(network, plan, cost, machine, std::move(losses));
  if (a.output.wants_data()) run.steps = report::network_steps_json(network, cost);
  run.program = to_string(network.program());
  if (!a.trace.empty())
    run.trace =
        report::to_trace({network.program().name, machine, cost.ledger, tiles, network.memory()});
  return run;
}

std::string json_of(const NetworkRun& run) {
  Json more = json::parse_own(run.steps);
  more["pattern_update"] =
      json::parse_own(train::new_patterns_json(run.patterns, run.report.microseconds() * 1e-6));
  return to_json(run.report, more.dump());
}

std::string explanation_of(const NetworkRun& run) {
  const report::NetworkReport& report = run.report;
  std::string text = "\n" +
                     train::new_patterns_text(run.patterns, report.microseconds() * 1e-6, run.link,
                                              printable(report.machine.name)) +
                     to_string(report.plan) + "\n";
  for (std::size_t l = 0; l < report.plan.plans.size(); ++l)
    text += fmt::format("\nlayer {}\n{}", l + 1, planner::to_string(report.plan.plans[l]));
  return text + "\n" + run.program;
}

}  // namespace

int network_on_machine(const NetworkArguments& a) {
  const NetworkRun run = run_network(a);
  if (!a.trace.empty()) write_results(a.trace, run.trace);
  if (!a.output.html.empty()) write_results(a.output.html, study_page(json_of(run)));
  if (!a.save_buckets.empty()) write_results(a.save_buckets, run.bucket_bytes);
  if (a.output.json)
    print_results(json_of(run));
  else if (a.output.csv)
    print_results(to_csv(run.report));
  else
    print_text(to_text(run.report) + (a.explain ? explanation_of(run) : ""));
  return kOk;
}

}  // namespace tessera::tools
