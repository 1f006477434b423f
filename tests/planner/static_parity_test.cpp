#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/planner/internal/static_search.hpp"
#include "tessera/tests/planner/static_pattern.hpp"

// 495 plans that were computed from the rules of PopLibs' search: layers of half, sides 256 to
// 8192, on one Bow IPU, with the pattern that the published measurements drew.
namespace tessera::planner {
namespace {

// A plan of the table; without a plan, parts, bands and cycles are 0.
struct RetoldPlan {
  std::int64_t block = 0;
  double density = 0;
  std::int64_t side = 0, batch = 0, parts = 0, bands = 0, cycles = 0;
};

std::vector<RetoldPlan> retold_plans() {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/data/static_plans.tsv");
  std::string heading;
  std::getline(file, heading);
  std::vector<RetoldPlan> plans;
  for (RetoldPlan p;
       file >> p.block >> p.density >> p.side >> p.batch >> p.parts >> p.bands >> p.cycles;)
    plans.push_back(p);
  return plans;
}

bool is_reproduced(const RetoldPlan& row, const internal::StaticCounts& counts) {
  const auto machine = device::machine_preset("bow");
  const Problem problem{.size = {1, row.side, row.side, row.batch},
                        .block = {row.block, row.block},
                        .density = row.density};
  const internal::StaticCase c{problem, machine, counts};
  const std::int64_t bound = machine.tile_memory.value * 6 / 10;
  const auto best = internal::search_as_poplibs(c, bound).best;
  if (!best) return row.cycles == 0;
  return best->parts == row.parts && best->bands == row.bands && best->price.cycles == row.cycles;
}

// Every third row, because searches take long in a build without optimisation. The pattern of 8192
// x 8192 elements takes most of a minute to draw, so its rows are left out, too.
std::vector<RetoldPlan> rows_to_compare() {
  constexpr std::int64_t kMostPlaces = 1 << 24;
  const std::vector<RetoldPlan> all = retold_plans();
  std::vector<RetoldPlan> rows;
  for (std::size_t i = 0; i < all.size(); i += 3)
    if (all[i].side / all[i].block * (all[i].side / all[i].block) <= kMostPlaces)
      rows.push_back(all[i]);
  return rows;
}

TEST(StaticParity, ReproducesRetoldPlans) {
  const std::vector<RetoldPlan> rows = rows_to_compare();
  ASSERT_EQ(rows.size(), 158u);
  RetoldPlan drawn;
  internal::StaticCounts counts;
  for (const RetoldPlan& row : rows) {
    if (row.block != drawn.block || row.side != drawn.side || row.density != drawn.density) {
      const auto matrix = bench::measured_pattern(row.side, {row.block, row.block}, row.density);
      counts = internal::count_blocks(view_of(matrix));
      drawn = row;
    }
    EXPECT_TRUE(is_reproduced(row, counts))
        << row.block << " " << row.density << " " << row.side << " " << row.batch;
  }
}

}  // namespace
}  // namespace tessera::planner
