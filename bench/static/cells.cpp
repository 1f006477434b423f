#include "tessera/bench/static/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/static/engine.hpp"
#include "tessera/io/read.hpp"

namespace tessera::bench {
namespace {

StaticCell cell_of(std::string name, const sparse::Csr<float>& matrix, std::int64_t batch,
                   const device::Machine& machine) {
  const Problem problem = half_problem(matrix, batch);
  const auto popsparse = planner::plan_static_as_poplibs(problem, view_of(matrix), machine);
  const auto ours = planner::plan_static(problem, view_of(matrix), machine);
  if (!popsparse.plan || !ours.plan)
    throw Error(ErrorCode::NoSolution, name + ": " + popsparse.reason + ours.reason);
  StaticCell cell{.name = std::move(name)};
  cell.popsparse =
      planner::count_static_cost(*popsparse.plan, problem, view_of(matrix), machine).cycles.value;
  cell.ours = ours.plan->cost.cycles.value;
  cell.run = run_static(matrix, problem, *ours.plan, machine).value;
  cell.cut = fmt::format("{}*{}, {}", ours.plan->parts.size(), ours.plan->bands.size() - 1,
                         ours.plan->layouts.front().tiles.size());
  cell.bounds = planner::static_bounds(problem, view_of(matrix), machine);
  return cell;
}

}  // namespace

planner::BlockPattern view_of(const sparse::Csr<float>& matrix) {
  return {matrix.block, matrix.block_rows(), matrix.block_cols(), matrix.row_begin, matrix.col};
}

Problem half_problem(const sparse::Csr<float>& matrix, std::int64_t batch) {
  return {.size = {1, matrix.rows, matrix.cols, batch}, .block = matrix.block};
}

void for_each_cell(const device::Machine& machine,
                   const std::function<void(const StaticCell&)>& visit) {
  for (const std::int64_t block : {16, 8, 4})
    for (const std::int64_t side : {1024, 4096})
      for (const std::int64_t share : {4, 8, 16, 32}) {
        const auto matrix = bench::measured_pattern(side, {block, block}, 1 / double(share));
        for (const std::int64_t batch : {4, 64, 1024})
          visit(cell_of(fmt::format("{:4} {:2} 1/{:<2} {:4}", side, block, share, batch), matrix,
                        batch, machine));
      }
}

std::optional<StaticCell> cell_of_file(const std::string& path, std::int64_t batch,
                                       const device::Machine& machine) {
  const auto read = io::read_matrix(path);
  sparse::Csr<float> matrix;
  matrix.rows = read.matrix.rows;
  matrix.cols = read.matrix.cols;
  matrix.row_begin = read.matrix.row_begin;
  matrix.col = read.matrix.col;
  matrix.values.assign(matrix.col.size(), 1);
  if (matrix.blocks() == 0) return {};
  const std::string name = std::filesystem::path(path).stem().string();
  return cell_of(fmt::format("{:.40} {}", name, batch), matrix, batch, machine);
}

std::string heading_of_cells() {
  return "cycles of half products on bow: PopLibs' cut and ours, both counted; ours on the engine "
         "by "
         "the\nplan; lower bounds of three steps alone, in % of ours\n\n"
         " m=k blk den batch  PopLibs     ours ratio engine  kernel bytes wait  z*bands, tiles\n";
}

std::string to_text(const StaticCell& cell) {
  const auto percent = [&](Cycles part) { return 100 * double(part.value) / double(cell.ours); };
  return fmt::format("{:<17} {:8} {:8} {:.3f}  {:.3f} {:6.0f} {:5.0f} {:5.0f}   {}\n", cell.name,
                     cell.popsparse, cell.ours, cell.ratio(), cell.engine_by_plan(),
                     percent(cell.bounds.kernel), percent(cell.bounds.bytes),
                     percent(cell.bounds.waiting), cell.cut);
}

Ratios ratios_of(const std::vector<StaticCell>& cells) {
  Ratios ratios;
  for (const StaticCell& cell : cells) ratios.add(cell.ratio());
  return ratios;
}

double largest_engine_error(const std::vector<StaticCell>& cells) {
  double largest = 0;
  for (const StaticCell& cell : cells)
    largest = std::max(largest, std::abs(cell.engine_by_plan() - 1));
  return 100 * largest;
}

}  // namespace tessera::bench
