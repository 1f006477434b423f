#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// One product with a static pattern: the cycles of PopLibs' cut and of our plan, both counted,
// those of our plan on the engine, and cycles that no plan of equal parts of the batch falls below.
struct StaticCell {
  std::string name;
  std::int64_t popsparse = 0, ours = 0, run = 0;
  std::string cut;  // parts of the batch * bands, and the tiles of a part
  planner::StaticBounds bounds;
  double ratio() const { return double(ours) / double(popsparse); }
  double engine_by_plan() const { return double(run) / double(ours); }
};

planner::BlockPattern view_of(const sparse::Csr<float>& matrix);
Problem half_problem(const sparse::Csr<float>& matrix, std::int64_t batch);

// Calls `visit` for half products of 1024 and 4096 rows and columns, blocks of 4, 8 and 16,
// densities of 1/4 to 1/32, and batches of 4, 64 and 1024.
void for_each_cell(const device::Machine& machine,
                   const std::function<void(const StaticCell&)>& visit);

// Returns the product of a matrix in a file, as elements, with that batch. Empty if the matrix has
// no elements, because there is nothing to plan then.
std::optional<StaticCell> cell_of_file(const std::string& path, std::int64_t batch,
                                       const device::Machine& machine);

std::string heading_of_cells();
std::string to_text(const StaticCell& cell);

Ratios ratios_of(const std::vector<StaticCell>& cells);

// Returns the largest difference between the cycles of a plan and of the engine, in % of the plan.
double largest_engine_error(const std::vector<StaticCell>& cells);

}  // namespace tessera::bench
