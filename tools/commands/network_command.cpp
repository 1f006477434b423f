#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/base/version.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/report/network_steps.hpp"
#include "tessera/report/trace.hpp"
#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/commands/network_batch.hpp"
#include "tessera/tools/commands/network_buckets.hpp"
#include "tessera/tools/commands/network_dense.hpp"
#include "tessera/tools/commands/network_file.hpp"
#include "tessera/tools/commands/network_on_host.hpp"
#include "tessera/tools/commands/network_pattern.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/manual.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;
using planner::NetworkWork;

struct NetworkArguments {
  std::string file, trace, html;
  std::string buckets, save_buckets;  // files of encoded weights; empty: none
  LayerArguments layer;               // the machine and the options of the planner
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  int threads = 0;
  bool json = false, explain = false, isolate = false, recompute = false;
};

// The result of a run: planned and modelled cycles of each kind of work of each layer, and the
// bytes that all tiles receive in it.
struct NetworkRun {
  struct Line {
    NetworkWork work = NetworkWork::Fwd;
    std::int64_t layer = 0;
    Cycles planned, cycles;
    Bytes moved;
  };
  planner::NetworkSpec spec;
  planner::NetworkPlan plan;
  device::Machine machine;
  std::vector<Line> lines;
  std::vector<float> losses;  // of each step, before its update
  device::Ledger ledger;      // of the last step
  std::optional<NetworkPatternUpdate> patterns;
  std::optional<DenseNetwork> dense;
  Bytes high_water;
  std::string program, trace;
  std::string steps;         // of the last step: report::network_steps_json
  std::string bucket_bytes;  // for --save-buckets
};

std::string layer_text(const NetworkRun::Line& line) {
  return serves_all(line.work) ? "all" : fmt::format("{}", line.layer + 1);
}

std::vector<NetworkRun::Line> lines_of(const planner::NetworkPlan& plan,
                                       const runtime::Network& network,
                                       const runtime::NetworkCost& cost) {
  // Work that serves all layers comes last.
  std::map<std::tuple<bool, std::int64_t, NetworkWork>, NetworkRun::Line> lines;
  const auto line = [&](NetworkWork work, std::int64_t layer) -> NetworkRun::Line& {
    NetworkRun::Line& found = lines[{serves_all(work), layer, work}];
    found.work = work;
    found.layer = layer;
    return found;
  };
  for (const planner::WorkCost& work : network.planned_work(plan))
    line(work.work, work.layer).planned += work.cycles;
  for (std::size_t i = 0; i < network.parts().size(); ++i) {
    const runtime::NetworkPart& part = network.parts()[i];
    if (part.work == NetworkWork::Parameters) continue;
    line(part.work, part.layer).cycles += cost.of(int(i));
    line(part.work, part.layer).moved += cost.moved(int(i));
  }
  std::vector<NetworkRun::Line> result;
  for (const auto& [key, value] : lines) result.push_back(value);
  return result;
}

// Encodes the weights of all layers, or takes those of sparse layers from --buckets. Returns the
// seconds that this takes.
double give_weights(runtime::Network& network, const NetworkFile& file, const NetworkArguments& a) {
  NetworkBuckets parts;
  if (!a.buckets.empty()) parts = read_network_buckets(a.buckets, file.spec);
  std::chrono::duration<double> encoding{};
  for (std::int64_t l = 0; l < std::ssize(file.weights); ++l) {
    if (!parts.empty() && !file.spec.layers[std::size_t(l)].dense) {
      const auto start = std::chrono::steady_clock::now();
      restore_layer(network, l, *parts[std::size_t(l)], a.buckets);
      encoding += std::chrono::steady_clock::now() - start;
      continue;
    }
    const sparse::Csr<float> weights = weights_of(file, l, a.seed);
    const auto start = std::chrono::steady_clock::now();
    const auto misfit = network.set_weights(l, weights);
    encoding += std::chrono::steady_clock::now() - start;
    if (misfit)
      throw Error(ErrorCode::NoSolution,
                  fmt::format("the weights of layer {} do not fit their buckets: {}; raise "
                              "metaInfoBucketOversizeProportion with --matmul-options",
                              l + 1, misfit->message));
  }
  return encoding.count();
}

NetworkRun run_network(const NetworkArguments& a) {
  NetworkFile file = load_network(a.file);
  if (a.recompute) recompute_every_second(file.spec);
  NetworkRun run{.spec = file.spec, .machine = make_machine(a.layer)};
  Progress progress(a.json);
  progress.set("planning the network");
  run.plan = planner::plan_network(run.spec, run.machine, make_options(a.layer, {}));
  progress.set("building its program");
  const auto executor = make_executor(a.threads);
  const auto mode = a.isolate ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
  runtime::Network network(run.spec, run.plan.plans, run.machine, mode, *executor);
  const double encoding = give_weights(network, file, a);
  if (!a.save_buckets.empty()) run.bucket_bytes = network_bucket_file(network);
  run.patterns.emplace(network, device::load_host_link(a.layer.machine), encoding);
  const DrawnBatch batch(run.spec, batch_seed(a.seed));
  runtime::NetworkCost cost;
  device::TileLedger tiles;
  for (std::int64_t step = 0; step < a.steps; ++step) {
    progress.set("running", step, a.steps);
    const bool keeps = !a.trace.empty() && step + 1 == a.steps;
    if (!network.run(batch.view(), {.tiles = keeps ? &tiles : nullptr}, cost)) break;
    if (run.spec.loss) run.losses.push_back(network.loss());
  }
  progress.set("planning the dense network");
  run.dense = compare_with_dense(network, cost, run.machine);
  run.lines = lines_of(run.plan, network, cost);
  if (a.json || !a.html.empty()) run.steps = report::network_steps_json(network, cost);
  run.high_water = network.high_water();
  run.program = to_string(network.program());
  if (!a.trace.empty())
    run.trace = report::to_trace(
        {network.program().name, run.machine, cost.ledger, tiles, network.memory()});
  run.ledger = std::move(cost.ledger);
  return run;
}

double microseconds(const NetworkRun& run) {
  return double(run.ledger.total().value) / run.machine.clock_hz * 1e6;
}

// The layers as the file describes them, with the parts into which the plan cuts each.
Json layers_json(const NetworkRun& run) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < run.spec.layers.size(); ++l) {
    const planner::NetworkLayer& layer = run.spec.layers[l];
    const planner::Plan& plan = run.plan.plans[l];
    const Dims& parts = plan.partition;
    layers.push_back({{"outputs", layer.outputs},
                      {"inputs", layer.inputs},
                      {"block_rows", layer.block.rows},
                      {"block_cols", layer.block.cols},
                      {"density", layer.density},
                      {"dense", layer.dense},
                      {"bias", layer.bias},
                      {"activation", codelets::to_string(layer.activation.kind)},
                      {"parts", {{"x", parts.x}, {"y", parts.y}, {"z", parts.z}}},
                      {"layouts", 1 + plan.backward.size()}});
  }
  return layers;
}

Cycles planned_cycles(const NetworkRun& run) {
  Cycles cycles;
  for (const NetworkRun::Line& line : run.lines) cycles += line.planned;
  return cycles;
}

Json json_of(const NetworkRun& run) {
  Json work = Json::array(), losses = run.losses;
  for (const NetworkRun::Line& line : run.lines)
    work.push_back({{"layer", serves_all(line.work) ? Json("all") : Json(line.layer + 1)},
                    {"work", to_string(line.work)},
                    {"planned_cycles", line.planned.value},
                    {"cycles", line.cycles.value},
                    {"moved_bytes", line.moved.value}});
  Json json{{"study", "network"},
            {"version", TESSERA_VERSION},
            {"machine", run.machine.name},
            {"tiles", run.machine.tiles},
            {"layers", run.spec.layers.size()},
            {"batch", run.spec.batch},
            {"data_type", tessera::to_string(run.spec.data_type)},
            {"loss", run.spec.loss ? Json(codelets::to_string(*run.spec.loss)) : Json()},
            {"planned_cycles", planned_cycles(run).value},
            {"planned_without_weights_cycles", run.plan.cycles.value},
            {"cycles", run.ledger.total().value},
            {"microseconds", microseconds(run)},
            {"moved_bytes", run.ledger.moved().value},
            {"layer_by_layer_cycles", run.plan.layer_by_layer.value},
            {"cheapest_plans_cycles", run.plan.cheapest_of_each.value},
            {"layer_by_layer_fits", run.plan.layer_by_layer_fits},
            {"planned_tile_bytes", run.plan.memory.value},
            {"tile_bytes", run.high_water.value},
            {"tile_memory", run.machine.tile_memory.value},
            {"pattern_update", Json::parse(run.patterns->to_json(microseconds(run) * 1e-6))},
            {"losses", std::move(losses)},
            {"work", std::move(work)},
            {"layer_list", layers_json(run)},
            {"verdict", Json::parse(run.dense->to_json())}};
  json.update(Json::parse(run.steps));
  return json;
}

std::string text_of(const NetworkRun& run) {
  std::string text =
      fmt::format("{} layers, batch {}, {}, {} on {}\n\n{:<8}{:<12}{:>14}{:>14}{:>10}{:>16}\n",
                  run.spec.layers.size(), run.spec.batch, tessera::to_string(run.spec.data_type),
                  run.spec.loss ? "one training step" : "forward", printable(run.machine.name),
                  "layer", "work", "planned", "cycles", "share", "bytes moved");
  const double total = double(run.ledger.total().value);
  for (const NetworkRun::Line& line : run.lines)
    text += fmt::format("{:<8}{:<12}{:>14}{:>14}{:>9.1f}%{:>16}\n", layer_text(line),
                        to_string(line.work), line.planned.value, line.cycles.value,
                        100 * double(line.cycles.value) / total, line.moved.value);
  text +=
      fmt::format("{:<8}{:<12}{:>14}{:>14}{:>10}{:>16}\n\n", "sum", "", planned_cycles(run).value,
                  run.ledger.total().value, "", run.ledger.moved().value);
  text += fmt::format("time       {:.1f} us at {:.3f} GHz (modelled)\n", microseconds(run),
                      run.machine.clock_hz * 1e-9);
  text += fmt::format("memory     {} of {} bytes on the fullest tile\n", run.high_water.value,
                      run.machine.tile_memory.value);
  const std::string verdict = fmt::format("verdict    {}\n", run.dense->to_text());
  if (run.losses.empty()) return text + verdict;
  text += fmt::format("loss       {:.4f}", run.losses.front());
  if (run.losses.size() > 1)
    text += fmt::format(" before the first step, {:.4f} before step {}", run.losses.back(),
                        run.losses.size());
  return text + "\n" + verdict;
}

std::string page_of(const NetworkRun& run) {
  Json json = json_of(run);
  json["date"] = date_of_today();
  return study_page(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string explanation_of(const NetworkRun& run) {
  std::string text = "\n" +
                     run.patterns->to_text(microseconds(run) * 1e-6, printable(run.machine.name)) +
                     to_string(run.plan) + "\n";
  for (std::size_t l = 0; l < run.plan.plans.size(); ++l)
    text += fmt::format("\nlayer {}\n{}", l + 1, planner::to_string(run.plan.plans[l]));
  return text + "\n" + run.program;
}

int network_main(const NetworkArguments& a) {
  if (is_host(a.layer))
    return print_network_on_host({a.file, a.html, a.steps, a.seed, a.threads, a.json});
  const NetworkRun run = run_network(a);
  if (!a.trace.empty()) write_results(a.trace, run.trace);
  if (!a.html.empty()) write_results(a.html, page_of(run));
  if (!a.save_buckets.empty()) write_results(a.save_buckets, run.bucket_bytes);
  if (a.json)
    print_results(json_of(run).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else
    print_text(text_of(run) + (a.explain ? explanation_of(run) : ""));
  return kOk;
}

}  // namespace

void add_network_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand("network",
                                         "Plans a network of sparse and dense layers together and "
                                         "runs it as one program, or runs it here.");
  command->footer(std::string(kExitCodes) +
                  "\nExample: tessera network examples/network.json --steps 10 --explain");
  const auto a = std::make_shared<NetworkArguments>();
  command->add_option("file", a->file, "the network, as JSON")->required();
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;
  require_whole(
      command->add_option("--steps", a->steps, "times that the program runs on the same batch"), 1,
      kMostSteps)
      ->capture_default_str();
  require_seed(
      command->add_option("--seed", a->seed, "of the weights, inputs and labels that are drawn"))
      ->capture_default_str();
  require_whole(
      command->add_option("--threads", a->threads, "threads of this computer; 0 means all"), 0,
      kMostThreads)
      ->capture_default_str();
  command->add_flag("--isolate", a->isolate,
                    "give every tile memory of its own and copy all bytes between tiles");
  command->add_flag("--recompute", a->recompute,
                    "compute every second result again for the backward passes, to save memory");
  auto* json = command->add_flag("--json", a->json, "print JSON");
  command
      ->add_flag("--explain", a->explain,
                 "also print the cost of new patterns, what joint planning gained, the plan of "
                 "each layer and "
                 "the program")
      ->excludes(json);
  require_writable_file(
      *command->add_option("--trace", a->trace, "write a trace of the last step for Perfetto")
           ->type_name("FILE"));
  require_writable_file(
      *command->add_option("--html", a->html, "write a page with charts of the last step")
           ->type_name("FILE"));
  command
      ->add_option("--buckets", a->buckets,
                   "FILE of encoded weights of the sparse layers, written by --save-buckets for "
                   "this network, machine and options; they are not encoded again")
      ->type_name("FILE");
  require_writable_file(
      *command
           ->add_option("--save-buckets", a->save_buckets,
                        "write the encoded weights of the sparse layers, before the first step")
           ->type_name("FILE"));
  add_machine_options(*command, a->layer);
  command
      ->add_option("--matmul-options", a->layer.matmul_options,
                   "planner options as a JSON object, for all layers")
      ->type_name("JSON");
  command->callback([command, a, &run] {
    refuse_tile_options(*command, a->layer,
                        {"--isolate", "--recompute", "--explain", "--trace", "--tiles-per-ipu",
                         "--buckets", "--save-buckets"});
    run = [a] { return network_main(*a); };
  });
}

}  // namespace tessera::tools
