// Measures speed and quality of the planner; bench/README.md describes the figures.

#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/bench/planner/bars.hpp"
#include "tessera/bench/planner/network_bars.hpp"
#include "tessera/bench/planner/training.hpp"
#include "tessera/tools/options/exit_code.hpp"

namespace {

using namespace tessera;

struct Arguments {
  bench::QualityRequest quality;
  bool show_quality = false, check_bars = false, verbose = false, networks = false,
       training = false;
  std::vector<std::string> for_benchmark;
};

// One iteration plans every row once.
void register_speed(bench::PlanTimes& times) {
  benchmark::RegisterBenchmark(("plan/" + times.name()).c_str(),
                               [&times](benchmark::State& state) {
                                 for (auto _ : state) times.measure();
                                 state.counters["median_ms"] = times.median();
                                 state.counters["max_ms"] = times.most();
                               })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(3);
}

int measure_speed(const Arguments& a) {
  using bench::Planning;
  std::vector<bench::PlanTimes> all;
  for (const Planning planning : {Planning::Parity, Planning::Default, Planning::Verdict,
                                  Planning::EnumerateParity, Planning::EnumerateDefault})
    all.emplace_back(planning, planner::read_recorded_plans(a.quality.rows));
  for (bench::PlanTimes& times : all) register_speed(times);
  std::vector<std::string> words(a.for_benchmark);
  words.insert(words.begin(), "planner_bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = int(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return tools::kUsage;
  benchmark::RunSpecifiedBenchmarks();
  std::erase_if(all, [](const bench::PlanTimes& times) { return !times.measured(); });
  tools::print_results("\n" + to_text(all));
  return tools::kOk;
}

int show_quality(const Arguments& a) {
  const auto executor = make_executor();
  tools::print_results("Uniform patterns\n" +
                       to_text(compare_uniform(a.quality, *executor), a.verbose));
  tools::print_results("\nSkewed patterns\n" +
                       to_text(compare_skewed(a.quality, *executor), a.verbose));
  return tools::kOk;
}

int show_training(const Arguments& a) {
  const auto executor = make_executor();
  const auto layers = bench::run_training_layers(a.quality.seed, bench::kTrainingLayers, *executor);
  tools::print_results(to_text(layers) + "\n" + to_text(bench::training_bars(layers)));
  return tools::kOk;
}

int check_bars(const Arguments& a) {
  const auto executor = make_executor();
  bool all_met = true;
  const auto show = [&](const std::vector<bench::Bar>& bars) {
    tools::print_results(to_text(bars));
    for (const bench::Bar& bar : bars) all_met &= bar.met();
  };
  const auto training = [&] {
    show(bench::training_bars(
        bench::run_training_layers(a.quality.seed, bench::kTrainingLayers, *executor)));
  };
  if (a.training) training();
  if (a.networks) show(bench::network_bars(a.quality.seed));
  if (a.training || a.networks) return all_met ? tools::kOk : tools::kCheckFailed;
  show(bench::speed_bars());
  show(bench::dense_speed_bars());
  show(bench::optimality_bars());
  show(bench::quality_bars(a.quality, *executor));
  training();
  return all_met ? tools::kOk : tools::kCheckFailed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed and quality of the planner. Without --quality or --bars: time per plan.");
  Arguments a;
  app.allow_extras();
  auto* quality = app.add_flag("--quality", a.show_quality, "cycles beside PopLibs' partition");
  auto* bars = app.add_flag("--bars", a.check_bars, "one line a bar; 1 when one is short");
  bars->excludes(quality);
  app.add_flag("--networks", a.networks, "with --bars: those of networks, and no others")
      ->needs(bars);
  app.add_flag("--training", a.training,
               "random training layers beside the plans nearby; with --bars: those bars alone")
      ->excludes(quality);
  app.add_flag("-v", a.verbose, "with --quality: every run, phase by phase")->needs(quality);
  app.add_option("--rows", a.quality.rows, "ids of recorded plans, instead of all or a draw")
      ->delimiter(',')
      ->excludes(bars);
  app.add_flag("--told", a.quality.told,
               "with --quality: tell the planner uniform patterns too, as sparse_fc_layer does");
  app.add_option("--nearby", a.quality.nearby,
                 "with --quality: also run so many of the cheapest partitions")
      ->needs(quality);
  app.add_option("--patterns", a.quality.patterns,
                 "with --quality: uniform patterns of a layer that are run")
      ->check(CLI::PositiveNumber)
      ->needs(quality);
  app.add_option("--seed", a.quality.seed, "of the draw and of the patterns");
  CLI11_PARSE(app, argc, argv);
  a.for_benchmark = app.remaining();
  return tools::guarded_main("planner_bench", [&] {
    if (!a.for_benchmark.empty() && (a.show_quality || a.check_bars || a.training))
      throw Error(ErrorCode::InvalidArgument, "unknown argument " + a.for_benchmark.front());
    if (a.show_quality) return show_quality(a);
    if (a.check_bars) return check_bars(a);
    return a.training ? show_training(a) : measure_speed(a);
  });
}
