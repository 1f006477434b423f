// Measures encoding, decoding and updating of buckets on this computer. --bars prints one line for
// each bar (name, figure, bar, ok or short) and exits with 1 if one is short. Every result is
// checked before it is timed.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/bench/partitioner/rates.hpp"
#include "tessera/bench/partitioner/training.hpp"
#include "tessera/bench/partitioner/updates.hpp"
#include "tessera/bench/peak_memory.hpp"
#include "tessera/bench/timing.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;

// Returns the peak memory, divided by the size of the input, while words and values of 100 million
// non-zeros are made for the host.
void encode_memory(Report& report) {
  Workload w = make_workload({32768, 0.0931323, 1, {1, 64, 2, 1}, 32});
  double time = 0;
  const auto encode = [&] {
    const auto encoded = partitioner::encode(w.matrix, w.grid);
    partitioner::to_bucket_order<float, float>(*encoded.buckets, w.matrix.values);
  };
  const double peak = bench::peak_memory([&] { time = seconds(encode, Clock::OwnThread); });
  report.at_most(
      fmt::format("encode {:.1f} million on the host, GiB over the input", w.blocks() / kMillion),
      peak / (1 << 30), 2.5);
  report.tell("  seconds, into new storage", time);
}

struct Measure {
  std::string name;
  std::function<void(Report&)> run;
};

std::vector<Measure> measures() {
  const Layer dense, thin{.density = 0.01}, blocks{.block = 16, .splits = {1, 32, 2, 23}};
  std::vector<Measure> list;
  for (const auto& [name, layer, bar] : {std::tuple("block 1, density 0.1", dense, 60.0),
                                         std::tuple("block 1, density 0.01", thin, 60.0),
                                         std::tuple("block 16, density 0.1", blocks, 12.0)}) {
    list.push_back({"encode", [=](Report& r) { encode_rate(r, name, layer, bar); }});
    list.push_back({"threads", [=](Report& r) { thread_ratio(r, name, layer); }});
  }
  list.push_back(
      {"encode", [=](Report& r) { encode_rate_half(r, "block 16, density 0.1", blocks, 12); }});
  for (auto& [name, run] : training_rates()) list.push_back({"training: " + name, std::move(run)});
  list.push_back({"splits", column_splits});
  for (const auto& [name, layer, anywhere] : {std::tuple("block 16, anywhere", blocks, true),
                                              std::tuple("block 1, in some rows", dense, false),
                                              std::tuple("block 1, anywhere", dense, true)}) {
    list.push_back({"update", [=](Report& r) { update_ratio(r, name, layer, anywhere); }});
    list.push_back({"slowest", [=](Report& r) { slowest_update(r, name, layer, anywhere); }});
  }
  const Layer training{.side = 2048, .splits = {1, 46, 32, 1}, .all_passes = true};
  for (const bool anywhere : {true, false})
    list.push_back({"slowest", [=](Report& r) {
                      slowest_update(r,
                                     anywhere ? "block 1, all passes, anywhere"
                                              : "block 1, all passes, in some rows",
                                     training, anywhere);
                    }});
  list.push_back({"decode", [=](Report& r) { decode_ratio(r, "block 1, density 0.1", dense); }});
  list.push_back({"decode", [=](Report& r) { decode_ratio(r, "block 16, density 0.1", blocks); }});
  list.push_back({"memory", encode_memory});
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Rates of the partitioner on this computer"};
  bool bars = false;
  std::string only;
  app.add_flag("--bars", bars, "Exit 1 when a figure is short of its bar");
  app.add_option("--only", only, "Measures with this in their name");
  CLI11_PARSE(app, argc, argv);
  Report report;
  for (const Measure& measure : measures())
    if (measure.name.find(only) != std::string::npos) measure.run(report);
  return bars && !report.all_met() ? 1 : 0;
}
