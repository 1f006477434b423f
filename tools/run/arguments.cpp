#include "tessera/tools/run/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/options/pod_options.hpp"
#include "tessera/tools/options/static_option.hpp"
#include "tessera/tools/run/internal/weights_options.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/trust.hpp"

namespace tessera::tools {
namespace {

// Reads "FIRST:LAST" or one number.
void parse_trace_tiles(const std::string& text, Arguments& a) {
  std::string pair = text;
  std::replace(pair.begin(), pair.end(), ':', ',');
  const auto tiles = parse_pair(pair);
  if (!tiles || tiles->first > tiles->second || tiles->second > kLargestSize)
    throw CLI::ValidationError("--trace-tiles", "the value is " + text +
                                                    "; it must be FIRST:LAST or a tile, counted "
                                                    "from 0");
  a.trace_first_tile = tiles->first;
  a.trace_tiles = tiles->second - tiles->first + 1;
}

void add_stop_options(CLI::App& app, Arguments& a) {
  const auto stop = [&a](StopAfter after) { return [&a, after] { a.stop = after; }; };
  auto* plan =
      app.add_flag_callback("--plan-only", stop(StopAfter::Plan),
                            "stop after planning and encoding; print the plan and the buckets");
  auto* build = app.add_flag_callback(
      "--compile-only", stop(StopAfter::Build),
      "stop after building the programs and checking that they fit the tiles");
  auto* run = app.add_flag_callback("--ignore-data", stop(StopAfter::Passes),
                                    "run without checking the results");
  plan->excludes(build)->excludes(run);
  build->excludes(run);
}

void add_report_options(CLI::App& app, Arguments& a) {
  app.add_flag("--report-plan", a.report_plan, "print the complete plan and its cost by term");
  app.add_flag("--report-total-cycle-counts", a.report_cycles,
               "print the modelled cycles of each pass");
  app.add_flag("--report-dense-gradw-serial-splits", a.report_serial_splits,
               "print the number of serial parts that a dense weight gradient would need");
  app.add_flag("--report-tiles", a.report_tiles,
               "add the work and the memory of each tile in each pass to the --json report");
  app.add_flag("--profile", a.profile,
               "print the cycles, the slowest tile and the bytes moved of every step");
}

void add_seed_options(CLI::App& app, Arguments& a) {
  auto* seed = require_seed(
      app.add_option("--seed", a.seed, "random seed for patterns, missing values and operands"));
  seed->capture_default_str();
  app.add_flag_callback(
         "--variable-seed",
         [&a] {
           a.seed = std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
         },
         "take the seed from the clock; the report states it")
      ->excludes(seed);
}

void add_spilling_option(CLI::App& app, Arguments& a) {
  static const std::map<std::string, SpillChoice> choices{
      {"fewest-steps", SpillChoice::FewestSteps},
      {"greedy", SpillChoice::Greedy},
      {"even-load", SpillChoice::EvenLoad}};
  auto* spilling = app.add_option(
      "--spilling", a.spilling,
      "placement of blocks that do not fit their own tile: fewest-steps (of propagation), greedy "
      "(PopSparse's order) or even-load (other tiles or more steps if the forward pass is then "
      "estimated faster)");
  take_one_of(spilling, choices)->type_name("CHOICE")->default_str("fewest-steps");
}

void add_computer_options(CLI::App& app, Arguments& a) {
  app.add_flag(
      "--isolate", a.isolate,
      "give every tile separate memory and copy data between tiles; slower, with the same results");
  static const std::map<std::string, SelfCheck> self_checks = {{"check", SelfCheck::Check},
                                                               {"repair", SelfCheck::Repair}};
  take_one_of(
      app.add_flag("--self-check{check}", a.self_check,
                   "watch memory during every pass and recompute results that are in doubt; "
                   "--self-check=repair runs a pass that fails once more"),
      self_checks);
  app.add_option_function<std::string>(
         "--inject", [&a](const std::string& text) { a.fault = parse_fault(text); },
         "flip one bit of a tile's memory before a step and report the effect: "
         "tile=5,step=3,bit=17, optionally with pass=fwd, bwd or wu (default: fwd) and with "
         "device=2 of a pod (default: 0); implies --isolate")
      ->type_name("FAULT");
  require_whole(
      app.add_option("--threads", a.threads, "number of threads on this computer; 0 uses all"), 0,
      kMostThreads)
      ->capture_default_str();
  add_rank_options(app, a.timeout_seconds);
}

void add_pod_run_options(CLI::App& app, Arguments& a) {
  app.add_flag("--devices-side-by-side", a.devices_side_by_side,
               "keep all devices of a pod in this computer's memory and run them on its threads; "
               "otherwise they run one after the other in the memory of one");
  require_whole(
      app.add_option("--devices-simulated", a.devices_simulated,
                     "run only so many devices of a pod and take the others to be as fast as the "
                     "slowest of them; results are then not complete and not checked"),
      1, kMostDevices)
      ->default_str("all");
}

void add_output_options(CLI::App& app, Arguments& a) {
  auto* output =
      app.add_option(
             "--output-dir", a.output_dir,
             "folder to write operands and results (.npy, .npz), the plan and the reports to")
          ->type_name("DIR");
  auto* profile = app.add_option("--profile-dir", a.output_dir, "same as --output-dir")
                      ->type_name("DIR")
                      ->excludes(output);
  for (CLI::Option* folder : {output, profile}) require_writable_folder(*folder);
  auto* trace =
      app.add_option("--trace", a.trace,
                     "write the activity of the tiles in all passes as a trace for Perfetto")
          ->type_name("FILE.json");
  app.add_option_function<std::string>(
         "--trace-tiles", [&a](const std::string& text) { parse_trace_tiles(text, a); },
         "tiles of the trace, as FIRST:LAST or a single number; all tiles share 64 tracks "
         "otherwise")
      ->type_name("FIRST:LAST")
      ->needs(trace);
  auto* page =
      app.add_option("--html", a.html, "write the report as one HTML page")->type_name("FILE");
  for (CLI::Option* file : {trace, page}) require_writable_file(*file);
  auto* json = app.add_flag("--json", a.json, "print the report as JSON");
  auto* csv = app.add_flag("--csv", a.csv, "print the report as CSV, one row per pass and phase");
  json->excludes(csv);
  app.add_flag("-q,--quiet", a.quiet, "print only errors and what --json or --csv request");
  app.add_flag("-v,--verbose", a.verbose, "print the value of every option on stderr");
}

// Throws CLI::ValidationError for options of passes that do not run.
void refuse_options_of_passes(const CLI::App& app, const Arguments& a) {
  if (a.stop >= StopAfter::Passes) return;
  for (const char* option : {"--trace", "--trace-tiles", "--profile", "--report-total-cycle-counts",
                             "--self-check", "--inject"})
    if (app.count(option) > 0)
      throw CLI::ValidationError(
          option, fmt::format("is for passes, and none runs with {}",
                              a.stop == StopAfter::Plan ? "--plan-only" : "--compile-only"));
}

// Throws CLI::ValidationError for an option that adds to a report which is not printed.
void refuse_options_of_reports(const CLI::App& app, const Arguments& a) {
  const char* const form = a.json ? "--json" : a.csv ? "--csv" : a.quiet ? "--quiet" : nullptr;
  for (const char* option : {"--report-plan", "--report-total-cycle-counts",
                             "--report-dense-gradw-serial-splits", "--profile"})
    if (form != nullptr && app.count(option) > 0)
      throw CLI::ValidationError(
          option, fmt::format("adds to the text, which {} replaces; omit one of them", form));
  if (app.count("--report-tiles") > 0 && !a.json && a.output_dir.empty())
    throw CLI::ValidationError("--report-tiles",
                               "adds to the report in JSON; give --json or --output-dir, too");
}

// Checks and completes values that depend on several options.
void read_together(const CLI::App& app, const internal::AreaText& area, Arguments& a) {
  a.names_machine =
      app.count("--machine") + app.count("--device-type") + app.count("--tiles-per-ipu") > 0;
  internal::check_weights_options(app, area, a);
  finish_common_run_options(app, a);
  refuse_tile_options(app, a, {"--buckets", "--save-buckets"});
  refuse_dynamic_options(
      app, a, a.is_static,
      {{"--spilling", "places blocks that do not fit their bucket, and there are no buckets"},
       {"--buckets", "has buckets, which such a pattern has not"},
       {"--save-buckets", "stores buckets, which such a pattern has not"},
       {"--groups", "plans several groups, each of which has a pattern of its own"},
       {"--report-dense-gradw-serial-splits",
        "counts the parts that fit beside buckets, which such a pattern has not"}});
  if (a.groups > 1 && !a.values.empty())
    throw CLI::ValidationError("--values",
                               "has the values of one pattern; omit --values or --groups");
  check_pod_options(
      app, a, a.pod,
      {"--static", "--buckets", "--save-buckets", "--spilling", "--on-no-fit", "--compile-only",
       "--trace-tiles", "--report-tiles", "--report-total-cycle-counts",
       "--report-dense-gradw-serial-splits", "--profile"});
  if (app.count("--replicas") > 0 && !is_host(a))
    throw CLI::ValidationError("--replicas", "applies only with --machine host");
  for (const char* option : {"--devices-side-by-side", "--devices-simulated"})
    if (app.count(option) > 0 && !a.pod.is_used())
      throw CLI::ValidationError(option, "applies only to --devices or --pod");
  if (a.fault && a.fault->device && !a.pod.is_used())
    throw CLI::ValidationError("--inject", "device= applies only to --devices or --pod");
  if (a.fault && a.devices_simulated > 0)
    throw CLI::ValidationError("--inject", "compares results; leave out --devices-simulated");
  if (a.devices_simulated > 0 && a.stop < StopAfter::Passes)
    throw CLI::ValidationError("--devices-simulated", "is for passes, and none runs");
}

}  // namespace

void finish_common_run_options(const CLI::App& app, Arguments& a) {
  take_host_defaults(app, a);
  a.configuration = effective_configuration(app);
  for (auto& [option, value] : a.configuration)
    if (option == "data-type") value = to_string(a.data_type);
  static_cast<LayerArguments&>(a) = with_layer_keys(a);
  check_rank_options(app);
  refuse_tile_options(app, a,
                      {"--tiles-per-ipu", "--plan-constraints", "--plan", "--plan-cache",
                       "--on-no-fit", "--spilling", "--isolate", "--inject", "--compile-only",
                       "--trace", "--trace-tiles", "--profile", "--report-plan", "--report-tiles",
                       "--report-total-cycle-counts", "--report-dense-gradw-serial-splits"});
  refuse_options_of_passes(app, a);
  refuse_options_of_reports(app, a);
  if (a.buckets.empty()) check_fault_pass(a);
}

void add_common_run_options(CLI::App& app, Arguments& a) {
  add_spilling_option(app, a);
  add_seed_options(app, a);
  add_computer_options(app, a);
  add_stop_options(app, a);
  add_report_options(app, a);
  add_output_options(app, a);
}

void add_run_options(CLI::App& app, const std::shared_ptr<Arguments>& arguments,
                     const std::function<void()>& parsed) {
  Arguments& a = *arguments;
  const auto area = std::make_shared<internal::AreaText>();
  app.footer(std::string(kExitCodes) +
             "\nExample: " + (app.get_parent() != nullptr ? "tessera " : "") + app.get_name() +
             " --input-size 1024 --output-size 1024 --density 0.1 --batch-size 64");
  add_weights_options(app, a);
  add_groups_option(app, a);
  add_replicas_option(app, a.replicas);
  add_layer_options(app, a);
  allow_auto_block(app, a);
  add_machine_options(app, a);
  add_pod_options(app, a.pod);
  add_pod_run_options(app, a);
  add_host_options(app, a);
  add_planner_options(app, a);
  add_static_option(app, a.is_static);
  add_spilling_option(app, a);
  internal::add_pattern_options(app, a, *area);
  add_seed_options(app, a);
  add_computer_options(app, a);
  add_stop_options(app, a);
  add_report_options(app, a);
  internal::add_operand_options(app, a);
  add_output_options(app, a);
  internal::add_bucket_options(app, a);
  internal::add_poplibs_options(app, a);
  app.callback([&app, arguments, area, parsed] {
    read_together(app, *area, *arguments);
    parsed();
  });
}

Parsed parse_arguments(const std::vector<std::string>& words, const char* program,
                       const char* description) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App app(description != nullptr
                   ? description
                   : "Plans, encodes and runs a sparse fully connected layer on a modelled tile "
                     "machine, forward and backward, and checks every result against double "
                     "precision.",
               program);
  add_run_options(app, arguments);
  add_config_option(app);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const std::optional<int> exit = parse_command_line(app, int(pointers.size()), pointers.data());
  return {*arguments, exit};
}

}  // namespace tessera::tools
