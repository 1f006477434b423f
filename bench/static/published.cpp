#include "tessera/bench/static/published.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/published/published_static.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::bench {
namespace {

const std::string kData = TESSERA_SOURCE_DIR "/tests/data/";

// A plan of the table; without a plan, parts, bands and cycles are 0.
struct RetoldPlan {
  std::int64_t block = 0;
  double density = 0;
  std::int64_t side = 0, batch = 0, parts = 0, bands = 0, cycles = 0;

  bool has_pattern_of(const RetoldPlan& other) const {
    return block == other.block && density == other.density && side == other.side;
  }
};

std::vector<RetoldPlan> retold_plans() {
  std::ifstream file(kData + "static_plans.tsv");
  std::string heading;
  std::getline(file, heading);
  std::vector<RetoldPlan> plans;
  for (RetoldPlan p;
       file >> p.block >> p.density >> p.side >> p.batch >> p.parts >> p.bands >> p.cycles;)
    plans.push_back(p);
  if (plans.empty()) throw Error(ErrorCode::BadInput, kData + "static_plans.tsv has no plans");
  return plans;
}

bool is_reproduced(const RetoldPlan& row, const sparse::Csr<float>& pattern,
                   const device::Machine& machine) {
  const auto found =
      planner::plan_static_as_poplibs(half_problem(pattern, row.batch), view_of(pattern), machine);
  if (!found.plan) return row.cycles == 0;
  return found.plan->z_parts == row.parts && std::ssize(found.plan->bands) - 1 <= row.bands &&
         found.plan->cost.cycles.value == row.cycles;
}

double reproduced_plans(const device::Machine& machine) {
  RetoldPlan drawn;
  sparse::Csr<float> pattern;
  double count = 0;
  for (const RetoldPlan& row : retold_plans()) {
    if (!row.has_pattern_of(drawn))
      pattern = bench::measured_pattern(row.side, {row.block, row.block}, row.density);
    drawn = row;
    count += is_reproduced(row, pattern, machine);
  }
  return count;
}

using Planned = std::vector<bench::PlannedStatic>;

double median_percent(Planned points, std::int64_t batch) {
  std::erase_if(points, [&](const bench::PlannedStatic& p) { return p.point.batch != batch; });
  return 100 * bench::errors_of(points).median;
}

}  // namespace

void static_published_bars(const device::Machine& machine, Report& report) {
  report.at_least("plans of PopLibs' search reproduced, of 495", reproduced_plans(machine), 480);
  const std::string name = kData + "published_static.tsv";
  const Planned points =
      bench::plan_points(bench::read_static_points(read_file(name), name), machine);
  const bench::StaticErrors errors = bench::errors_of(points);
  const std::string what = "error of cycles, 159 published cells, ";
  report.at_most(what + "median, %", 100 * errors.median, 9);
  report.at_most(what + "90th percentile, %", 100 * errors.ninetieth, 27);
  report.at_most(what + "batch 4, median, %", median_percent(points, 4), 7);
  report.at_most(what + "batch 16, median, %", median_percent(points, 16), 9);
}

}  // namespace tessera::bench
