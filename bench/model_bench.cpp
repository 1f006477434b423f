// Measures the speed of the modelled machine on this computer. --bars prints one line for each bar
// (name, figure, bar, ok or short) and exits with 1 if one is short. Results are checked first.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/model/plain_product.hpp"
#include "tessera/bench/peak_memory.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;
using bench::Report;

constexpr std::int64_t kSide = 4096, kBatch = 256;
constexpr double kDensity = 0.1;

sparse::Csr<float> pattern_of(std::int64_t block) {
  return sparse::random_pattern(kSide, kSide, {block, block}, kDensity, 7);
}

Problem problem_of(std::int64_t block) {
  return {.size = {1, kSide, kSide, kBatch},
          .block = {block, block},
          .density = kDensity,
          .data_type = DataType::Float};
}

// One layer with its operands on one thread.
struct Simulated {
  Simulated(const sparse::Csr<float>& pattern, const device::Machine& machine,
            device::ExchangeMode mode)
      : weights(pattern),
        problem(problem_of(pattern.block.rows)),
        plan(planner::plan_or_throw(problem, machine, planner::sparse_options())),
        layer(problem, plan, machine, mode, *executor),
        s(random_matrix<float>(kSide, kBatch, 1)),
        q(kSide, kBatch) {
    if (const auto misfit = layer.set_weights(weights)) throw std::runtime_error(misfit->message);
  }
  void forward() { layer.forward<float>(std::as_const(s).view(), q.view()); }
  void check() const {
    const Rounding rounding{DataType::Float, problem.partials_type, partial_sums()};
    const auto result = verify::verify_product<float>(weights, s.view(), q.view(), rounding);
    if (!result.ok()) throw std::runtime_error("wrong result: " + to_string(result));
  }
  std::int64_t partial_sums() const { return plan.partition.y; }
  // The memory of R, S and Q, the buckets, and the partial sums of all tiles. Passes in Share mode
  // do not store partial sums.
  double partial_bytes() const { return 4 * double(kSide * kBatch) * double(partial_sums()); }
  double needed_bytes() const {
    const partitioner::Buckets& buckets = layer.buckets();
    const double tiles = double(buckets.grid.buckets());
    const double bucket = double(buckets.grid.meta_words) * double(buckets.grid.word_bits) / 8 +
                          4 * double(buckets.values_per_bucket());
    const double pattern = 4 * double(weights.values.size() + weights.col.size()) +
                           8 * double(weights.row_begin.size());
    return pattern + 2 * 4 * double(kSide * kBatch) + partial_bytes() + tiles * bucket;
  }

  using Rounding = verify::Rounding;
  std::unique_ptr<Executor> executor = bench::sequential();
  const sparse::Csr<float>& weights;
  Problem problem;
  planner::Plan plan;
  runtime::FullyConnected layer;
  Matrix<float> s, q;
};

void times(Report& report, std::int64_t block) {
  const device::Machine machine = device::machine_preset("gc200");
  const auto weights = pattern_of(block);
  Simulated share(weights, machine, device::ExchangeMode::Share);
  Simulated isolate(weights, machine, device::ExchangeMode::Isolate);
  Matrix<float> q(kSide, kBatch);
  const auto s = std::as_const(share.s).view();
  const auto medians =
      bench::medians({[&] { bench::plain_product(share.weights, s, q.view()); },
                      [&] { bench::plain_product_native(share.weights, s, q.view()); },
                      [&] { share.forward(); }, [&] { isolate.forward(); }});
  share.check();
  isolate.check();
  const std::string name = fmt::format("block {}: ", block);
  report.at_most(name + "simulated Fwd, shared memory, by a plain loop", medians[2] / medians[0],
                 1.5);
  report.at_most(name + "simulated Fwd, isolated memory, by a plain loop", medians[3] / medians[0],
                 4);
  report.tell(name + "  the plain loop, ms", 1e3 * medians[0]);
  report.tell(name + "  the plain loop with this computer's instructions, ms", 1e3 * medians[1]);
  report.tell(name + "  simulated, shared memory, ms", 1e3 * medians[2]);
  report.tell(name + "  simulated, isolated memory, ms", 1e3 * medians[3]);
}

// Measures the time from the caller's weights to the first result.
void memory(Report& report, std::int64_t block) {
  const device::Machine machine = device::machine_preset("gc200");
  const auto weights = pattern_of(block);
  double needed = 0, partial = 0;
  const double peak = bench::peak_memory([&] {
    Simulated layer(weights, machine, device::ExchangeMode::Share);
    layer.forward();
    needed = layer.needed_bytes();
    partial = layer.partial_bytes();
  });
  report.at_most(fmt::format("block {}: peak memory by operands, buckets and partial sums", block),
                 peak / needed, 1.25);
  report.tell("  MiB at the peak", peak / (1 << 20));
  report.tell("  the peak by operands and buckets", peak / (needed - partial));
}

// A machine with as many tiles as 64 processors.
void many_tiles(Report& report) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles *= 64;
  const double seconds = bench::seconds(
      [&] {
        const auto weights = pattern_of(1);
        Simulated layer(weights, machine, device::ExchangeMode::Share);
        layer.forward();
        layer.check();
        report.tell(fmt::format("tiles of {} that the plan uses", machine.tiles),
                    double(layer.plan.tiles_used()));
      },
      bench::Clock::OwnThread);
  report.tell("  seconds to plan, build, encode, run and check", seconds);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed and memory of a simulated forward pass on this computer");
  bool bars = false;
  app.add_flag("--bars", bars, "Exit 1 when a figure is short of its bar");
  std::string only;
  app.add_option("--only", only, "Measures with this in their name: memory, times, tiles");
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&only](std::string_view name) { return name.find(only) != name.npos; };
  try {
    Report report;
    for (const std::int64_t block : {1, 16})
      if (wanted("memory")) memory(report, block);
    for (const std::int64_t block : {1, 16})
      if (wanted("times")) times(report, block);
    if (wanted("tiles")) many_tiles(report);
    return bars && !report.all_met() ? 1 : 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
