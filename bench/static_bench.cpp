// Plans products with a static pattern and compares them with PopLibs' cuts: a line for each of 72
// products with a lower bound beside it, then patterns of trained layers from files. --bars adds
// one line for each bar, the times of plans among them, and exits with 1 if one is missed.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/bench/report.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/bench/static/engine.hpp"
#include "tessera/bench/static/pass.hpp"
#include "tessera/bench/static/published.hpp"
#include "tessera/bench/static/small.hpp"
#include "tessera/bench/static/speed.hpp"
#include "tessera/bench/static/training.hpp"

namespace {

using namespace tessera;

std::vector<bench::StaticCell> print_cells(const device::Machine& machine) {
  fmt::print("{}", bench::heading_of_cells());
  std::vector<bench::StaticCell> cells;
  bench::for_each_cell(machine, [&cells](const bench::StaticCell& cell) {
    fmt::print("{}", bench::to_text(cell));
    cells.push_back(cell);
  });
  return cells;
}

std::vector<bench::StaticCell> print_files(const std::vector<std::string>& files,
                                           const device::Machine& machine) {
  std::vector<bench::StaticCell> cells;
  if (!files.empty()) fmt::print("\n");
  for (const std::string& file : files)
    for (const std::int64_t batch : {64, 1024}) {
      const auto cell = bench::cell_of_file(file, batch, machine);
      if (!cell) continue;
      cells.push_back(*cell);
      fmt::print("{}", bench::to_text(*cell));
    }
  return cells;
}

int run(const std::vector<std::string>& files, bool bars) {
  const device::Machine machine = device::machine_preset("bow");
  const auto cells = print_cells(machine), of_files = print_files(files, machine);
  if (!bars) return 0;
  bench::Report report;
  fmt::print("\n");
  report.at_most("cycles by PopLibs' cut, 72 products, geometric mean", ratios_of(cells).mean(),
                 0.87);
  report.at_most("cycles by PopLibs' cut, 72 products, largest", ratios_of(cells).largest(), 1.0);
  if (!of_files.empty())
    report.at_most("cycles by PopLibs' cut, files, geometric mean", ratios_of(of_files).mean(),
                   0.88);
  report.at_most(
      "cycles of a plan and of the engine, largest difference, %",
      std::max(bench::largest_engine_error(cells), bench::largest_engine_error(of_files)), 1.0);
  const bench::BesideDynamic beside = bench::run_beside_dynamic(machine);
  report.at_least("static over dynamic rate, 4096, blocks of 16, batch 1024, 1/16",
                  beside.over_float_sums(), 2.0);
  report.tell("  the same, if the dynamic layer adds in half as well", beside.over_half_sums());
  bench::static_speed_bars(machine, report);
  bench::small_plan_bars(report);
  bench::training_plan_figures(machine, report);
  bench::static_pass_bars(report);
  bench::static_published_bars(machine, report);
  fmt::print("\n{}", bench::to_text(beside));
  return report.all_met() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares plans of products with a static pattern with PopLibs' cuts.",
               "static_bench");
  bool bars = false;
  std::vector<std::string> files;
  app.add_flag("--bars", bars, "compare with bars; exit 1 if one is missed");
  app.add_option("--files", files, "matrices of elements to plan for batches of 64 and 1024");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(files, bars);
  } catch (const std::exception& error) {
    fmt::print(stderr, "static_bench: {}\n", error.what());
    return 2;
  }
}
