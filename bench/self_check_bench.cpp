// Measures the self-check of a layer: the flipped bits that it sees, by layer and by buffer, false
// alarms of clean passes, and its share of the time of a pass.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>

#include "tessera/bench/self_check/trial.hpp"
#include "tessera/bench/timing.hpp"

namespace {

using namespace tessera;
using bench::CheckTrial;
using bench::Tally;

constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

void print(const std::string& name, const Tally& t) {
  const std::string rate =
      t.beyond == 0 ? "" : fmt::format("{:.1f} %", 100.0 * double(t.seen) / double(t.beyond));
  fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", name, t.struck, t.refused, t.beyond, t.seen,
             rate, t.alarms);
  std::fflush(stdout);
}

void print_heading(const char* first) {
  fmt::print(
      "\n| {} | struck | words refused | beyond | seen | rate | false alarms |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
      first);
}

// Flips `flips` bits in each layer, a third in each pass.
bool measure_flips(std::int64_t flips, std::uint64_t seed, Executor& executor) {
  std::map<std::string, Tally> by_buffer;
  Tally all;
  print_heading("layer");
  for (const bench::CheckedLayer& layer : bench::checked_layers()) {
    CheckTrial trial(layer, device::ExchangeMode::Isolate, seed, executor);
    Random random(seed);
    std::map<std::string, Tally> of_layer;
    for (std::int64_t i = 0; i < flips; ++i) trial.flip(kPasses[i % 3], random, of_layer);
    Tally sum;
    for (const auto& [buffer, tally] : of_layer) {
      sum += tally;
      by_buffer[buffer] += tally;
    }
    print(layer.name, sum);
    all += sum;
  }
  print("all", all);
  print_heading("buffer");
  for (const auto& [buffer, tally] : by_buffer) print(buffer, tally);
  return double(all.seen) >= 0.99 * double(all.beyond) && all.alarms == 0;
}

// Passes without a fault, and those of them whose self-check failed.
struct Alarms {
  std::int64_t passes = 0, alarms = 0;
};

// Draws the size of a small layer, for as many random patterns and values as there are seeds.
Dims small_size(std::uint64_t seed, BlockShape block) {
  Random random(seed);
  return {1, block.rows * (2 + random.below(12)), block.cols * (2 + random.below(12)),
          1 + random.below(12)};
}

// Runs the passes of each layer six times for each seed, on a machine and on this computer, until
// each of the two has run half of `passes`.
bool measure_alarms(std::int64_t passes, std::uint64_t seed, Executor& executor) {
  Alarms tiles, host;
  while (tiles.passes + host.passes < passes)
    for (bench::CheckedLayer layer : bench::checked_layers()) {
      layer.problem.size = small_size(++seed, layer.problem.block);
      layer.tiles = 3;
      CheckTrial trial(layer, device::ExchangeMode::Share, seed, executor);
      for (int i = 0; i < 6; ++i, tiles.passes += 3) tiles.alarms += trial.clean_alarms();
      host.passes += 18;
      host.alarms += bench::host_alarms(layer.problem, 6, seed, executor);
    }
  fmt::print("\n| clean passes | number | false alarms |\n| --- | ---: | ---: |\n");
  fmt::print("| on tiles | {} | {} |\n", tiles.passes, tiles.alarms);
  fmt::print("| on this computer | {} | {} |\n", host.passes, host.alarms);
  return tiles.alarms + host.alarms == 0;
}

bool measure_time(Executor& executor) {
  bool is_met = true;
  fmt::print(
      "\n| layer | exchange | pass | ms | with the check | share |\n"
      "| --- | --- | --- | ---: | ---: | ---: |\n");
  for (bench::CheckedLayer layer : bench::checked_layers()) {
    layer.problem.size = {1, 1024, 1024, 128};
    layer.problem.density = 0.1;
    layer.tiles = 96;
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
      CheckTrial trial(layer, mode, 1, executor);
      for (const Pass pass : kPasses) {
        const auto times =
            bench::medians({[&] { trial.run(pass, false); }, [&] { trial.run(pass, true); }});
        const double share = times[1] / times[0] - 1;
        is_met = is_met && share <= 0.06;
        fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.1f} % |\n", layer.name,
                   mode == device::ExchangeMode::Share ? "Share" : "Isolate", to_string(pass),
                   1e3 * times[0], 1e3 * times[1], 100 * share);
        std::fflush(stdout);
      }
    }
  }
  return is_met;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures the self-check of a layer");
  std::int64_t flips = 3000, clean = 100'000;
  std::uint64_t seed = 1;
  bool has_bars = false;
  app.add_option("--flips", flips, "flipped bits in each layer; 0 leaves them out")
      ->capture_default_str();
  app.add_option("--clean", clean, "passes without a fault; 0 leaves them out")
      ->capture_default_str();
  app.add_option("--seed", seed, "of weights, operands and flips")->capture_default_str();
  bool has_time = true;
  app.add_flag("!--no-time", has_time, "leave out the share of time");
  app.add_flag("--bars", has_bars,
               "exit with 1 unless 99 % are seen, no pass fails without reason and the share is at "
               "most 6 %");
  CLI11_PARSE(app, argc, argv);
  const auto executor = bench::sequential();
  bool is_met = flips == 0 || measure_flips(flips, seed, *executor);
  if (clean > 0) is_met = measure_alarms(clean, seed, *executor) && is_met;
  if (has_time) is_met = measure_time(*executor) && is_met;
  return has_bars && !is_met ? 1 : 0;
}
