// Compares plans and runs of pods with what is required of them. --bars prints one line for each
// bar (name, figure, bar, ok or short) and exits with 1 if one is short. --only NAME takes the
// groups with NAME in their name: collectives, optimal, step, run, large, search. --table NAME
// prints rows of bench/results/pods.md for one of the layers A, B, C and D.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/peak_memory.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/collectives/make_schedule.hpp"
#include "tessera/collectives/schedule_cost.hpp"
#include "tessera/pod/plan_pod.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/tessera.hpp"
#include "tessera/tests/pod/all_grids.hpp"

namespace {

using namespace tessera;
using bench::Report;
using collectives::Algorithm;
using collectives::Operation;

double ratio_of(double a, double b) { return std::max(a / b, b / a); }

// The price of a gather or a sum over a ring with the links of the presets.
double ring_seconds(Operation operation, Algorithm algorithm, std::int32_t devices, double bytes) {
  device::Pod pod = device::pod_preset("bow-pod64");
  pod.levels = {pod.levels.back()};
  pod.levels.front().devices = devices;
  const auto schedule = collectives::make_schedule(operation, {devices, algorithm});
  const auto groups = collectives::groups_of({0, devices, 1, devices});
  return collectives::schedule_cost(schedule, groups, pod, bytes / schedule.pieces()).seconds;
}

void collective_bars(Report& report) {
  struct Found {
    std::int32_t devices;
    double kib;
  };
  for (const Found& found : {Found{4, 608}, Found{8, 2432}, Found{16, 19456}}) {
    const auto difference = [&](double bytes) {
      return ring_seconds(Operation::AllGather, Algorithm::TwoWayRing, found.devices, bytes) -
             ring_seconds(Operation::AllGather, Algorithm::MeetInTheMiddle, found.devices, bytes);
    };
    const double at_0 = difference(0), slope = (difference(1e6) - at_0) / 1e6;
    const double ratio = -at_0 / slope / (found.kib * 1024);
    report.at_most(fmt::format("ring of {}: size where two ways overtake, by the vendor's, or its "
                               "inverse",
                               found.devices),
                   ratio_of(ratio, 1), 1.6);
  }
  constexpr double kBytes = 64e6, kRate = 29.2e9;
  constexpr std::int32_t kDevices = 16;
  for (const Operation operation : {Operation::AllGather, Operation::ReduceScatter}) {
    double least = 1;
    for (const Algorithm algorithm : collectives::algorithms_for(kDevices))
      least = std::min(least, ring_seconds(operation, algorithm, kDevices, kBytes));
    const double bound = kBytes * (kDevices - 1) / kDevices / (2 * kRate);
    report.at_most(fmt::format("{} of 64 MB over a ring of 16 by the bound of its bytes",
                               collectives::to_string(operation)),
                   least / bound, 1.05);
  }
}

// Layers and pods are random, so are links: from a twentieth of the presets' rate to a thousand
// times. Machines have few tiles, because every grid is planned.
void optimal_bar(Report& report) {
  double worst = 1;
  std::int64_t plans = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const bool large = seed % 10 == 0;
    const pod::Drawn drawn = pod::draw(seed, large ? 4 : 3, large ? 16 : 5);
    const pod::PodResult result = pod::plan_pod(drawn.problem, drawn.pod);
    const double least = pod::least_seconds(drawn);
    if (!result.plan && least < std::numeric_limits<double>::infinity())
      throw std::runtime_error(fmt::format("no plan for seed {}", seed));
    if (!result.plan) continue;
    ++plans;
    worst = std::max(worst, result.plan->seconds() / least);
  }
  report.at_most("planned time of the grid by the best of all grids, worst of 200 layers", worst,
                 1 + 1e-9);
  report.tell("  layers that have a plan", double(plans));
}

Problem training(std::int64_t side, std::int64_t block, double density, std::int64_t batch) {
  return {.size = {1, side, side, batch},
          .block = {block, block},
          .density = density,
          .grad_a = true,
          .grad_w = true};
}

// The layers of the study and of the results page.
struct NamedLayer {
  const char* name;
  Problem problem;
};
const NamedLayer kLayers[] = {{"A", training(8192, 16, 1.0 / 16, 4096)},
                              {"B", training(4096, 1, 1.0 / 16, 16384)},
                              {"C", training(32768, 16, 1.0 / 64, 1024)},
                              {"D", training(16384, 16, 1.0 / 32, 65536)}};

// Returns a bound that no schedule on the ring of a pod of 64 can pass: the seconds in which its
// links carry the least of S, Q and the gradients of R. If rows of the ring have different columns
// of the batch, every gradient goes to all of them as a sum and comes back as a total; else S or Q
// does so, in Fwd and in GradA. That is 2 * 31 hops of 32 links, with two devices a link in two
// directions.
double ring_bound(const Problem& problem, const device::PodLevel& ring) {
  const Dims& size = problem.size;
  const double most = double(std::max(size.x, size.y));
  const double r = problem.density * double(size.x) * double(size.y);
  const double operands = (double(size.x) + double(size.y) - most) * double(size.z);
  const double bytes = double(bytes_of(problem.data_type)) * std::min(r, operands);
  const double hops = 2.0 * double(ring.devices - 1), links = 4.0 * double(ring.devices);
  return bytes * hops / links / ring.bytes_per_second;
}

void step_bars(Report& report) {
  struct Bar {
    const NamedLayer& layer;
    double bar;
  };
  for (const auto& [layer, bar] : {Bar{kLayers[0], 0.55}, Bar{kLayers[2], 0.33}}) {
    const device::Pod pod = device::pod_preset("bow-pod64");
    const auto best = pod::plan_pod_or_throw(layer.problem, pod);
    const auto data = pod::plan_pod_or_throw(layer.problem, pod, {}, {1, 1, 1, 64});
    report.at_most(
        fmt::format("layer {}: training step on 64 devices by data parallel alone", layer.name),
        best.seconds() / data.seconds(), bar);
    report.tell(fmt::format("  {}, us", to_string(best.grid)), 1e6 * best.seconds());
    report.tell("  of which on devices, us", 1e6 * best.device_seconds());
    report.tell("  data parallel alone, us", 1e6 * data.seconds());
    report.tell("  by the bytes of the ring, no schedule is faster than, us",
                1e6 * ring_bound(layer.problem, pod.levels.back()));
    device::Pod no_latency = pod;
    for (device::PodLevel& level : no_latency.levels) level.step_seconds = 0;
    report.tell("  the ratio if steps of collectives had no latency, but those of data parallel",
                pod::plan_pod_or_throw(layer.problem, no_latency).seconds() / data.seconds());
    // The same links, but none that two groups of devices share: a bound for other topologies.
    device::Pod unshared = pod;
    unshared.levels.back().kind = device::LevelKind::Switch;
    unshared.levels.back().bytes_per_second *= 2;
    const auto best_unshared = pod::plan_pod_or_throw(layer.problem, unshared);
    const auto data_unshared = pod::plan_pod_or_throw(layer.problem, unshared, {}, {1, 1, 1, 64});
    report.tell("  the same ratio where groups share no links",
                best_unshared.seconds() / data_unshared.seconds());
  }
}

// Runs all passes of a layer with random data, checks the results and returns the time by the
// ledgers.
struct RunTime {
  double seconds = 0, device_seconds = 0;

  void add(const pod::PodLedger& ledger) {
    seconds += ledger.seconds();
    device_seconds += ledger.device_seconds();
  }
};

RunTime run_time(const pod::PodPlan& plan, const sparse::Csr<float>& weights, Executor& executor) {
  const Problem& problem = plan.problem;
  pod::PodLayer layer(plan, device::ExchangeMode::Share, pod::DeviceOrder::OneAfterAnother,
                      executor);
  if (const auto misfit = layer.set_weights(weights)) throw std::runtime_error(misfit->message);
  const auto s = random_matrix<Half>(problem.size.y, problem.size.z, 1);
  const auto q_grad = random_matrix<Half>(problem.size.x, problem.size.z, 2);
  Matrix<Half> q(problem.size.x, problem.size.z), s_grad(problem.size.y, problem.size.z);
  std::vector<float> gradients(std::size_t(layer.values()));
  RunTime time;
  time.add(layer.forward<Half>(s.view(), q.view()));
  const auto verdict = verify::verify_product<Half>(weights, s.view(), std::as_const(q).view(),
                                                    layer.rounding(Pass::Fwd));
  if (!verdict.ok()) throw std::runtime_error("wrong result: " + to_string(verdict));
  if (problem.grad_a) time.add(layer.grad_a<Half>(q_grad.view(), s_grad.view()));
  if (problem.grad_w) time.add(layer.grad_w<Half>(q_grad.view(), s.view(), gradients));
  return time;
}

void run_bar(Report& report) {
  const auto executor = make_executor();
  double worst = 1, worst_device = 1;
  std::int64_t number = 0;
  for (const std::int64_t side : {1024, 2048})
    for (const std::int64_t block : {1, 16})
      for (const std::int64_t batch : {1024, 4096})
        for (const std::int64_t devices : {4, 16, 64}) {
          if (++number % 6 == 0) continue;  // 20 of them
          Problem problem = training(side, block, 0.1, batch);
          problem.grad_a = problem.grad_w = number % 3 != 0;
          const device::Pod pod = device::pod_of(device::machine_preset("bow"), devices);
          auto weights = sparse::random_pattern(side, side, problem.block, problem.density, 7);
          for (float& value : weights.values) value = float(Half(value));
          const auto known = sparse::checked(weights);
          const auto plan = pod::with_pattern(
              pod::plan_pod_or_throw(problem, pod, planner::sparse_options()), {&known, 1});
          const RunTime time = run_time(plan, weights, *executor);
          const double ratio = time.seconds / plan.seconds();
          worst_device = std::max(worst_device, time.device_seconds / plan.device_seconds());
          report.tell(fmt::format("  run by planned: {} square, block {}, batch {}, {}", side,
                                  block, batch, to_string(plan.grid)),
                      ratio);
          worst = std::max(worst, ratio_of(ratio, 1));
        }
  report.at_most("planned by run, or its inverse, worst of 20 layers on 4, 16, 64 devices", worst,
                 1.03);
  report.tell("  the steps of devices alone, run by planned", worst_device);
}

// 64 devices one after another beside one machine with the tiles of all.
void large_bars(Report& report) {
  constexpr std::int64_t kSide = 32768, kBatch = 64, kDevices = 64;
  const auto executor = make_executor();
  Problem problem{.size = {1, kSide, kSide, kBatch}, .density = 0.01};
  const auto weights =
      sparse::checked(sparse::random_pattern(kSide, kSide, {1, 1}, problem.density, 7));
  const auto s = random_matrix<Half>(kSide, kBatch, 1);
  Matrix<Half> q(kSide, kBatch), flat_q(kSide, kBatch);
  double pod_wall = 0, flat_wall = 0;
  const double pod_peak = bench::peak_memory([&] {
    pod_wall = bench::seconds(
        [&] {
          const auto plan = pod::plan_pod_or_throw(
              problem, device::pod_of(device::machine_preset("bow"), kDevices),
              planner::sparse_options(), {1, 8, 8, 1});
          pod::PodLayer layer(plan, device::ExchangeMode::Share, pod::DeviceOrder::OneAfterAnother,
                              *executor);
          if (layer.set_weights(weights)) throw std::runtime_error("misfit");
          layer.forward<Half>(s.view(), q.view());
        },
        bench::Clock::Wall);
  });
  const double flat_peak = bench::peak_memory([&] {
    flat_wall = bench::seconds(
        [&] {
          device::Machine machine = device::machine_preset("bow");
          machine.tiles *= kDevices;
          const auto plan = planner::plan_or_throw(problem, machine, planner::sparse_options());
          runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share,
                                        *executor);
          if (layer.set_weights(weights)) throw std::runtime_error("misfit");
          layer.forward<Half>(s.view(), flat_q.view());
        },
        bench::Clock::Wall);
  });
  constexpr double kGib = double(1 << 30);
  report.at_most("32768 square, 0.01, z 64, 64 devices: GiB at the peak over the operands",
                 pod_peak / kGib, 0.5);
  report.tell("  of one machine with their tiles", flat_peak / kGib);
  report.at_most("  plan, encode and run: wall time by that of one machine with their tiles",
                 pod_wall / flat_wall, 1.2);
  report.tell("  seconds", pod_wall);
  report.tell("  seconds of one machine with their tiles", flat_wall);
}

void search_bar(Report& report) {
  const device::Pod pod = device::pod_of(device::machine_preset("bow"), 16384);
  for (const NamedLayer& layer : kLayers) {
    pod::PodResult result;
    const double seconds = bench::seconds([&] { result = pod::plan_pod(layer.problem, pod); },
                                          bench::Clock::OwnThread);
    report.at_most(
        fmt::format("layer {}: seconds to plan 16,384 devices, three passes", layer.name), seconds,
        2);
    report.tell("  counts of parts", double(result.grids));
    report.tell("  devices planned", double(result.device_plans));
  }
}

// Prints the fastest grids of a layer, with default options, and those that cut the batch alone.
void print_table(const NamedLayer& layer) {
  for (const std::int64_t devices : {1, 4, 16, 64, 256, 1024, 16384}) {
    const device::Pod pod = device::pod_of(device::machine_preset("bow"), devices);
    const auto best = pod::plan_pod_or_throw(layer.problem, pod);
    pod::GridPins batch_alone;
    batch_alone.g = batch_alone.x = batch_alone.y = 1;
    const auto data = pod::plan_pod_or_throw(layer.problem, pod, {}, batch_alone);
    fmt::print("| {} | {} | {} | {} | {:.0f} | {:.0f} | {:.0f} |\n", layer.name, devices,
               to_string(best.grid.parts()), best.serial_parts, 1e6 * best.seconds(),
               1e6 * best.device_seconds(), 1e6 * data.seconds());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans and runs of layers on pods of modelled machines");
  bool bars = false;
  std::string only, table;
  app.add_flag("--bars", bars, "Exit 1 when a figure is short of its bar");
  app.add_option("--only", only, "Measure the groups with this text in their name");
  app.add_option("--table", table, "Print rows of the results page for layer A, B, C or D")
      ->check(CLI::IsMember({"A", "B", "C", "D"}));
  CLI11_PARSE(app, argc, argv);
  const std::pair<std::string, std::function<void(Report&)>> groups[] = {
      {"collectives", collective_bars},
      {"optimal", optimal_bar},
      {"step", step_bars},
      {"run", run_bar},
      {"large", large_bars},
      {"search", search_bar}};
  try {
    for (const NamedLayer& layer : kLayers)
      if (layer.name == table) print_table(layer);
    if (!table.empty()) return 0;
    Report report;
    for (const auto& [name, measure] : groups)
      if (name.find(only) != std::string::npos) measure(report);
    return bars && !report.all_met() ? 1 : 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
