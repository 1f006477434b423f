#include <CLI/CLI.hpp>

#include "tessera/base/error.hpp"
#include "tessera/bench/published/crossings.hpp"
#include "tessera/bench/published/published.hpp"
#include "tessera/bench/published/published_dense.hpp"
#include "tessera/bench/published/published_static.hpp"
#include "tessera/bench/published/sensitivity.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"

namespace {

struct Arguments {
  std::string table, machine = "bow", output;
  // The batches of the published plots.
  std::vector<std::int64_t> batches = {4, 16, 64, 256, 1024, 4096, 16384, 65536};
  std::int64_t patterns = 0;
  int threads = 0;
  bool tsv = false, sensitivity = false, crossings = false;
};

void add_options(CLI::App& app, Arguments& a) {
  auto* table =
      app.add_option(
             "--table", a.table,
             "tab-separated table with columns m_eq_k, block, density, tflops and perhaps type, "
             "or, of dense products, dtype, m_eq_k, n and tflops, or, of static patterns, m_eq_k, "
             "n, "
             "block, density and tflops; - reads standard input; "
             "default: 17 points of one Bow IPU")
          ->type_name("FILE.tsv");
  app.add_option("--machine", a.machine, "machine to model: gc200, bow, mk1 or FILE.json")
      ->capture_default_str();
  using namespace tessera::tools;
  require_whole(
      app.add_option("--batches", a.batches, "batch sizes to try; the best result counts"), 1,
      std::int64_t{1} << 20)
      ->capture_default_str();
  require_whole(
      app.add_option(
          "--patterns", a.patterns,
          "number of random patterns per point, for the spread beside the measured pattern"),
      0, 1000)
      ->capture_default_str();
  require_whole(
      app.add_option("--threads", a.threads, "number of threads on this computer; 0 uses all"), 0,
      kMostThreads);
  auto* tsv = app.add_flag("--tsv", a.tsv, "print a tab-separated table of the cycles by term");
  auto* sensitivity =
      app.add_flag("--sensitivity", a.sensitivity,
                   "print the errors with one constant changed at a time, and constants derived "
                   "without a group of points");
  app.add_flag("--crossings", a.crossings,
               "print the speed of sparse over dense for m = k = 4096, and the densities up to "
               "which sparse pays, beside published ones")
      ->excludes(table)
      ->excludes(tsv)
      ->excludes(sensitivity)
      ->excludes("--patterns");
  require_writable_file(
      *app.add_option("--output", a.output, "file to write instead of standard output")
           ->type_name("FILE"));
}

// Plans the points of a table whose rows have a batch each.
template <class Points>
int run_points(const Arguments& a, const Points& points) {
  using namespace tessera;
  if (a.tsv)
    throw Error(ErrorCode::InvalidArgument,
                "--tsv has no form for points with a batch each; leave it out or give a table "
                "without the column n");
  const device::Machine machine = device::load_machine(a.machine);
  tools::write_results(a.output, bench::to_text(bench::plan_points(points, machine), machine));
  return tools::kOk;
}

int run(const Arguments& a) {
  using namespace tessera;
  const std::string table = a.table.empty() ? std::string() : tools::load_text(a.table);
  if (!a.table.empty() && bench::is_dense_table(table, a.table))
    return run_points(a, bench::read_dense_points(table, a.table));
  if (!a.table.empty() && bench::is_static_table(table, a.table))
    return run_points(a, bench::read_static_points(table, a.table));
  const auto points =
      a.table.empty() ? bench::published_points() : bench::read_published(table, a.table);
  const bench::Repetition how{device::load_machine(a.machine), a.batches, a.patterns};
  const auto executor = make_executor(a.threads);
  if (a.crossings) {
    const auto ratios = bench::speed_ups(bench::crossing_points(), how, *executor);
    tools::write_results(a.output, bench::to_text(ratios, how));
    return tools::kOk;
  }
  if (a.sensitivity) {
    tools::write_results(a.output, bench::sensitivity_text(points, how, *executor));
    return tools::kOk;
  }
  std::vector<bench::Repeated> repeated;
  for (const bench::PublishedPoint& point : points)
    repeated.push_back(bench::repeat(point, how, *executor));
  tools::write_results(a.output, a.tsv ? bench::to_table(repeated) : bench::to_text(repeated, how));
  return tools::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera;
  return tools::guarded_main("published", [&] {
    CLI::App app("Repeats published PopSparse measurements on a modelled machine.", "published");
    app.footer(tools::kExitCodes);
    Arguments arguments;
    add_options(app, arguments);
    if (const auto exit = tools::parse_command_line(app, argc, argv)) return *exit;
    return run(arguments);
  });
}
