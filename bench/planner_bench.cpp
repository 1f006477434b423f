// Speed and quality of the planner: see bench/README.md.

#include <CLI/CLI.hpp>
#include <string>

#include "tessera/bench/planner/quality.hpp"
#include "tessera/tools/exit_code.hpp"

namespace {

using namespace tessera;

struct Arguments {
  bench::QualityRequest quality;
  bool verbose = false, show_quality = false;
};

int show_quality(const Arguments& a) {
  const auto executor = make_executor();
  tools::print_results(
      "Uniform patterns\n" + to_text(compare_uniform(a.quality, *executor), a.verbose) +
      "\nSkewed patterns\n" + to_text(compare_skewed(a.quality, *executor), a.verbose));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed and quality of the planner");
  Arguments a;
  app.add_flag("--quality", a.show_quality, "simulated cycles beside PopLibs' partition");
  app.add_flag("-v", a.verbose, "with --quality: every run, phase by phase");
  app.add_option("--rows", a.quality.rows, "ids of recorded plans, instead of a draw")
      ->delimiter(',');
  app.add_option("--seed", a.quality.seed, "of the draw and of the patterns");
  CLI11_PARSE(app, argc, argv);
  return tools::guarded_main("planner_bench", [&] { return show_quality(a); });
}
