// Compares the host layer with the peak of one core. --bars prints one line for each bar and exits
// with 1 if one is short. --case out,in,z,block,density,pass,type,threads prints any one case as
// JSON.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/bench/layer/cache_of_peak.hpp"
#include "tessera/bench/layer/comparisons.hpp"
#include "tessera/bench/layer/grid.hpp"
#include "tessera/bench/layer/grid_choices.hpp"
#include "tessera/bench/layer/layer_case.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/layer/peers_16bit.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/bench/spmm/scipy.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/float_peak.hpp"

namespace {

using namespace tessera;
using bench::LayerCase, bench::Measured;

// A case, and the fractions of the float peak that it must reach where a core reads half a byte of
// its second-level cache, and a whole one, for each operation of that peak.
struct Bar {
  LayerCase layer;
  double half_byte = 0, whole_byte = 0;
  double at_least_gf = 0;  // or useful GFLOP/s, when above 0

  double of_peak(double bytes_per_flop) const {
    return std::lerp(half_byte, whole_byte, std::clamp(2 * bytes_per_flop - 1, 0.0, 1.0));
  }
};

const std::vector<Bar>& bars() {
  static const std::vector<Bar> list = {
      {{.z = 256}, 0.47, 0.50},
      {{.z = 256, .density = 0.01}, 0.30, 0.30},
      {{.z = 64}, 0.35, 0.35},
      {{.z = 1024, .density = 0.25}, 0.54, 0.58},
      {{.z = 8}, 0.24, 0.30},
      {{.z = 1}, 0, 0, 9},
      {{.block = 16}, 0.84, 0.92},
      {{.z = 1024, .block = 16}, 0.80, 0.85},
      {{.block = 16, .density = 0.01}, 0.82, 0.85},
      {{.x = 1024, .y = 1024, .block = 8}, 0.85, 0.85},
      {{.block = 4}, 0.50, 0.50},
      {{.block = 16, .type = "bfloat16"}, 1.55, 1.65},
      {{.pass = Pass::GradA}, 0.40, 0.40},
      {{.pass = Pass::GradW}, 0.34, 0.34},
      {{.block = 16, .pass = Pass::GradW}, 0.78, 0.80},
  };
  return list;
}

// Prints one line; returns true if the bar is met.
bool print_bar(const std::string& name, double figure, double bar) {
  const bool ok = figure >= bar;
  fmt::print("{:<62} {:>7.3f} {:>7.3f} {}\n", name, figure, bar, ok ? "ok" : "short");
  std::fflush(stdout);
  return ok;
}

// Prints a figure that must not exceed its bar.
bool print_limit(const std::string& name, double figure, double bar) {
  return print_bar(name + ", inverse", 1 / figure, 1 / bar);
}

// A simulated forward pass may take this many times as long as the host's.
constexpr double kMostSimulated = 2;

std::filesystem::path shared_folder() {
  const char* chosen = std::getenv("TESSERA_SHARED");
  return chosen != nullptr ? chosen : TESSERA_SOURCE_DIR "/../shared";
}

bool run_comparison_bars() {
  bool all = true;
  for (const std::int64_t block : {1, 16})
    all &= print_limit(fmt::format("simulated Fwd by the host's, block {}", block),
                       bench::simulated_over_host({.block = block}), kMostSimulated);
  const bench::Ratios real = bench::real_over_uniform(shared_folder());
  if (real.empty())
    fmt::print("no DLMC matrices in {}; set TESSERA_SHARED\n", shared_folder().string());
  else
    all &= print_bar(fmt::format("{} DLMC matrices by uniform patterns", real.count()), real.mean(),
                     0.85);
  all &= !real.empty();
  LayerCase half{.density = 0.5};
  all &= print_bar("dense by sparse time, density 0.5, z256",
                   bench::dense_seconds(half) / bench::measure(half).seconds, 1);
  return all;
}

// Returns SciPy's rate on a square matrix of elements as a fraction of the float peak, or 0.
double scipy_of_peak(const LayerCase& c, const std::string& python) {
  constexpr int kRepeats = 9;
  if (c.block != 1 || c.x != c.y) return 0;
  const double seconds = bench::scipy_seconds(c.x, c.density, c.z, python, kRepeats);
  const double flops = 2 * double(c.x) * std::round(double(c.y) * c.density) * double(c.z);
  return seconds == 0 ? 0 : flops / seconds / host::measure_float_peak().fused;
}

// The better of our two products beside the best other library, on one case.
struct PeerResult {
  std::string name, best;
  std::int64_t block = 1;
  double own_by_best = 1;
};

void print_peer_summary(std::vector<PeerResult> results) {
  std::sort(results.begin(), results.end(),
            [](const PeerResult& a, const PeerResult& b) { return a.own_by_best < b.own_by_best; });
  for (const PeerResult& r : results)
    if (r.own_by_best < 1)
      fmt::print("we lose: {}: {:.2f} of the rate of {}\n", r.name, r.own_by_best, r.best);
  for (const std::int64_t block : {1, 4, 8, 16}) {
    bench::Ratios ratios;
    for (const PeerResult& r : results)
      if (r.block == block) ratios.add(r.own_by_best);
    if (!ratios.empty())
      fmt::print("block {:>2}: our rate by the best other's, geometric mean of {}: {:.2f}\n", block,
                 ratios.count(), ratios.mean());
  }
}

// Prints the rates of all libraries on one case, and returns the better of our two and the best
// other one, if there is one.
std::optional<PeerResult> print_rates(const LayerCase& layer, const std::string& python) {
  fmt::print("{}\n", layer.name());
  const bool is_float = layer.type == "float";
  std::vector<bench::PeerRate> rates =
      is_float ? bench::peer_rates(layer) : bench::peer_rates_16bit(layer);
  if (const double scipy = is_float ? scipy_of_peak(layer, python) : 0; scipy > 0)
    rates.push_back({"SciPy", scipy});
  double own = 0, other = 0;
  PeerResult result{.name = layer.name(), .best = {}, .block = layer.block};
  for (const bench::PeerRate& rate : rates) {
    fmt::print("  {:<24} {:>7.3f}\n", rate.name, rate.of_peak);
    if (rate.name.starts_with("own")) {
      own = std::max(own, rate.of_peak);
    } else if (rate.of_peak > other) {
      other = rate.of_peak;
      result.best = rate.name;
    }
  }
  std::fflush(stdout);
  if (other == 0) return std::nullopt;
  result.own_by_best = own / other;
  return result;
}

// Prints the rates of other libraries on the cases of the bars, in one type or in all three, as
// fractions of the float peak.
void print_peers(const std::string& python, const std::string& type) {
  for (const bench::Peer& peer : bench::peers())
    if (peer.make == nullptr) fmt::print("{}: not found when this was built\n", peer.name);
  std::vector<PeerResult> results;
  for (const std::string one : {"float", "half", "bfloat16"}) {
    if (!type.empty() && type != one) continue;
    for (const Bar& bar : bars()) {
      if (bar.layer.pass != Pass::Fwd || bar.layer.type != "float") continue;
      LayerCase layer = bar.layer;
      layer.type = one;
      if (const auto result = print_rates(layer, python)) results.push_back(*result);
    }
  }
  print_peer_summary(std::move(results));
}

void print_crossovers() {
  for (const std::int64_t block : {1, 4, 8, 16})
    fmt::print("block {:>2}: sparse is faster than dense below density {:.2f}\n", block,
               bench::crossover({.block = block}));
}

// This is no bar: forecasts choose between paths whose times differ by more than the forecasts'
// errors.
void print_forecasts() {
  bench::Ratios ratios;
  for (const Bar& bar : bars())
    for (const auto dense : {host::DenseChoice::Never, host::DenseChoice::Always}) {
      if (dense == host::DenseChoice::Always && bar.layer.z > 256) continue;
      LayerCase c = bar.layer;
      c.dense = dense;
      const Measured m = bench::measure(c);
      const double ratio = m.forecast_seconds / m.seconds;
      fmt::print("{:<62} {:<6} forecast by measured {:.2f}\n", c.name(),
                 dense == host::DenseChoice::Always ? "dense" : "sparse", ratio);
      std::fflush(stdout);
      ratios.add(ratio);
    }
  fmt::print("forecast by measured: geometric mean {:.2f}, farthest off {:.2f} times\n",
             ratios.mean(), std::max(ratios.largest(), 1 / ratios.least()));
}

// Prints the rates of all cases by the bars of this processor, on the widest instruction set.
bool run_rate_bars() {
  const bench::CacheOfPeak cache = bench::measure_cache_of_peak();
  fmt::print("{}, {}: {:.2f} bytes of the second-level cache an operation\n",
             host::host_cpu_model(), cache.instruction_set, cache.bytes_per_flop);
  bool all = true;
  for (const Bar& bar : bars()) {
    const Measured one = bench::measure(bar.layer);
    if (bar.at_least_gf > 0)
      all &= print_bar(bar.layer.name() + ", GFLOP/s", one.rate() * 1e-9, bar.at_least_gf);
    else
      all &= print_bar(bar.layer.name() + ", of peak", one.of_peak(),
                       bar.of_peak(cache.bytes_per_flop));
  }
  return all;
}

// Prints the same on AVX2, as fractions of the peak that it has here. They must reach 0.85 of the
// fractions that a processor of this ratio reaches on its widest instructions.
bool run_avx2_bars() {
  if (!bench::UseAvx2::is_possible()) {
    fmt::print("no AVX2 here\n");
    return true;
  }
  const bench::UseAvx2 narrow;
  constexpr double kShare = 0.85;
  const bench::CacheOfPeak cache = bench::measure_cache_of_peak();
  fmt::print("{}: {:.2f} bytes of the second-level cache an operation; {} of its bars\n",
             cache.instruction_set, cache.bytes_per_flop, kShare);
  bool all = true;
  for (const Bar& bar : bars()) {
    if (bar.at_least_gf > 0 || bar.layer.type != "float") continue;
    all &= print_bar("AVX2, " + bar.layer.name(), bench::measure(bar.layer).of_peak(),
                     kShare * bar.of_peak(cache.bytes_per_flop));
  }
  return all;
}

bool run_thread_bars() {
  bench::Ratios scaling;
  double share = 1e9;
  for (const Bar& bar : bars()) {
    if (bar.layer.z < 64) continue;
    const Measured one = bench::measure(bar.layer);
    share = std::min(share, one.kernel_share);
    LayerCase two = bar.layer;
    two.threads = 2;
    scaling.add(one.seconds / bench::measure(two).seconds);
  }
  bool all = print_bar("two threads by one, geometric mean, z >= 64", scaling.mean(), 1.75);
  all &= print_bar("kernels' share of a pass, the least, z >= 64", share, 0.93);
  return all;
}

// Prints the passes of the matrices of weight-sparse transformers, one value in 64 stored, for
// 4,096 and 16,384 tokens, as fractions of the peak.
bool run_transformer_bars() {
  constexpr double kBar = 0.30;
  bool all = true;
  for (const std::int64_t z : {4096, 16384})
    for (const auto& [x, y] :
         {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {1024, 4096}, {4096, 1024}})
      for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
        const LayerCase one{.x = x, .y = y, .z = z, .density = 1.0 / 64, .pass = pass};
        all &= print_bar(one.name() + ", of peak", bench::measure(one).of_peak(), kBar);
      }
  return all;
}

bool run_bars() {
  bool all = run_rate_bars();
  all &= run_transformer_bars();
  all &= run_avx2_bars();
  all &= run_thread_bars();
  all &= run_comparison_bars();
  print_crossovers();
  return all;
}

void print_case(const std::string& text, const std::vector<std::int64_t>& caches) {
  LayerCase c = bench::parse_case(text);
  if (caches.size() == 2) c.cpu.l1_data = Bytes(caches[0] << 10), c.cpu.l2 = Bytes(caches[1] << 10);
  const Measured m = bench::measure(c);
  const nlohmann::ordered_json json = {{"case", text},
                                       {"seconds", m.seconds},
                                       {"least_seconds", m.least_seconds},
                                       {"flops", m.flops},
                                       {"gflops", m.rate() * 1e-9},
                                       {"peak_gflops", m.peak * 1e-9},
                                       {"of_peak", m.of_peak()},
                                       {"kernel_share", m.kernel_share},
                                       {"copy_share", m.copy_share},
                                       {"forecast_seconds", m.forecast_seconds}};
  fmt::print("{}\n", json.dump());
}

using GridRun = void(const std::vector<bench::GridCase>&, const bench::GridChoice&);

void run_grid(GridRun& run, const std::string& shard, const std::string& only) {
  bench::GridChoice choice = bench::parse_shard(shard);
  choice.only = only;
  run(bench::read_grid(TESSERA_SOURCE_DIR "/bench/layer/grid.tsv", shared_folder()), choice);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rate of the host layer's passes, as a fraction of this core's float peak");
  bool wants_bars = false, wants_peers = false, wants_forecasts = false, wants_avx2 = false,
       wants_transformers = false;
  app.add_flag("--peers", wants_peers, "the bars' forward cases beside other libraries");
  std::string type;
  app.add_option("--type", type, "for --peers: only this type; without it, all three")
      ->check(CLI::IsMember({"float", "half", "bfloat16"}));
  std::string python = "/usr/bin/python3";
  app.add_option("--python", python, "a Python that has SciPy, for --peers; empty: leave it out");
  std::vector<std::string> cases;
  std::vector<std::int64_t> caches;
  std::vector<std::int64_t> simulated;
  app.add_option("--simulated", simulated,
                 "time of a simulated Fwd on gc200 by the host's, 4096x4096, density 0.1, z 256, "
                 "for these block sides");
  app.add_option("--caches", caches, "cut for an L1 and an L2 of so many KiB")->expected(2);
  app.add_flag("--forecasts", wants_forecasts, "what the cost model says, by what was measured");
  app.add_flag("--transformers", wants_transformers, "the bars of weight-sparse transformers only");
  app.add_flag("--avx2", wants_avx2, "the cases of the bars on AVX2 only");
  app.add_flag("--bars", wants_bars, "one line a bar: name, figure, bar, ok or short");
  app.add_option("--case", cases, "out,in,z,block,density,pass,type,threads")->delimiter(';');
  bool wants_grid = false, wants_choices = false;
  std::string shard = "1/1", only;
  app.add_flag("--grid", wants_grid, "every case of bench/layer/grid.tsv beside other libraries");
  app.add_flag("--choices", wants_choices,
               "what DenseChoice::Auto takes for the cases of the grid, by the faster");
  app.add_option("--shard", shard,
                 "for --grid and --choices: the cases of one of so many shards, as 1/12");
  app.add_option("--only", only,
                 "for --grid and --choices: cases with this text in their group or name");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& c : cases) print_case(c, caches);
    for (const std::int64_t block : simulated)
      print_limit(fmt::format("simulated Fwd by the host's, block {}", block),
                  bench::simulated_over_host({.block = block}), kMostSimulated);
    if (wants_peers) print_peers(python, type);
    if (wants_grid) run_grid(bench::run_grid, shard, only);
    if (wants_choices) run_grid(bench::run_choices, shard, only);
    if (wants_forecasts) print_forecasts();
    if (wants_transformers && !wants_bars) return run_transformer_bars() ? 0 : 1;
    if (wants_avx2 && !wants_bars) return run_avx2_bars() ? 0 : 1;
    return wants_bars && !run_bars() ? 1 : 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
