#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/tests/planner/static_pattern.hpp"

namespace tessera::planner {
namespace {

// The rows of 1024 x 1024 in blocks of 16; the others take too long in a build without
// optimisation.
TEST(StaticResults, TheTableHasTheCyclesOfThePlanner) {
  std::ifstream table(TESSERA_SOURCE_DIR "/bench/results/static.tsv");
  const std::regex row(R"(1024\t16\t1/(\d+)\t(\d+)\t(\d+)\t(\d+)\t.*)");
  const auto machine = device::machine_preset("bow");
  int rows = 0;
  std::smatch cells;
  for (std::string line; std::getline(table, line);) {
    if (!std::regex_match(line, cells, row)) continue;
    SCOPED_TRACE(line);
    ++rows;
    const auto matrix = bench::measured_pattern(1024, {16, 16}, 1 / std::stod(cells[1]));
    const Problem problem = problem_of(matrix, std::stoll(cells[2]));
    const auto popsparse = plan_static_as_poplibs(problem, view_of(matrix), machine).plan.value();
    const auto ours = plan_static(problem, view_of(matrix), machine).plan.value();
    EXPECT_EQ(count_static_cost(popsparse, problem, view_of(matrix), machine).cycles.value,
              std::stoll(cells[3]));
    EXPECT_EQ(ours.cost.cycles.value, std::stoll(cells[4]));
  }
  EXPECT_EQ(rows, 12);
}

}  // namespace
}  // namespace tessera::planner
