#include "tessera/bench/static/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/io/read.hpp"
#include "tessera/tools/published/measured_pattern.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kBytes = 2;  // of a half

// Figures of a product that its lower bounds need.
struct Bounds {
  const Problem& problem;
  const device::Machine& machine;
  std::int64_t blocks = 0, longest_column = 0;  // blocks of the pattern, of its longest column

  std::int64_t batch() const {
    return round_up(problem.size.z, machine.vector_width(DataType::Half));
  }
  std::int64_t kernel(std::int64_t share, std::int64_t blocks_of_tile) const;
  std::int64_t bytes(std::int64_t share, std::int64_t parts, std::int64_t blocks_of_tile) const;
};

// A tile has a row at least. Elements are shared by all workers, or by half of them for half of the
// columns.
std::int64_t Bounds::kernel(std::int64_t share, std::int64_t blocks_of_tile) const {
  const codelets::StaticKernel kernel{problem.block, DataType::Half};
  const std::int64_t workers = machine.workers;
  const auto worker = [&](std::int64_t z, std::int64_t count) {
    return workers * codelets::static_worker_cycles(kernel, z)(1, count).value;
  };
  if (problem.is_element_wise())
    return std::min(worker(share, ceil_div(blocks_of_tile, workers)),
                    worker(round_up(ceil_div(share, 2), machine.vector_width(DataType::Half)),
                           ceil_div(2 * blocks_of_tile, workers)));
  return worker(ceil_div(share, workers), blocks_of_tile) +
         codelets::static_supervisor_cycles(kernel)(1, blocks_of_tile).value;
}

// A column has no more blocks on a tile than in the pattern, so a tile needs this many columns.
std::int64_t Bounds::bytes(std::int64_t share, std::int64_t parts,
                           std::int64_t blocks_of_tile) const {
  const std::int64_t columns = ceil_div(blocks_of_tile, longest_column);
  const std::int64_t operand = columns * problem.block.cols * share * kBytes;
  const std::int64_t values = parts == 1 ? 0 : blocks_of_tile * problem.block.area() * kBytes;
  return ceil_div(operand + values, machine.exchange_bytes_per_cycle);
}

void add_bounds(const Bounds& b, StaticCell& cell) {
  const std::int64_t grain = b.machine.vector_width(DataType::Half), grains = b.batch() / grain;
  cell.kernel = cell.bytes = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t asked = 1; asked <= std::min(grains, b.machine.tiles); ++asked) {
    const std::int64_t share = ceil_div(grains, asked), parts = ceil_div(grains, share);
    const std::int64_t blocks = ceil_div(b.blocks, b.machine.tiles / parts);
    cell.kernel = std::min(cell.kernel, b.kernel(share * grain, blocks));
    cell.bytes = std::min(cell.bytes, b.bytes(share * grain, parts, blocks));
  }
  const Dims size = b.problem.size_in_blocks();
  for (const std::int64_t rows : {size.x, size.y})
    cell.bytes += codelets::arrange_cycles(rows * b.batch() * kBytes, b.machine.tiles,
                                           b.machine.arrange_bytes_per_cycle)
                      .value;
  constexpr std::int64_t kLaunches = 3;  // S, the kernel and Q
  cell.barriers = b.machine.sync.value + kLaunches * b.machine.launch.value;
}

std::int64_t longest_column(const sparse::Csr<float>& matrix) {
  std::vector<std::int64_t> count(std::size_t(matrix.block_cols()), 0);
  for (const auto column : matrix.col) ++count[std::size_t(column)];
  return std::ranges::max(count);
}

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
  cell.cut = fmt::format("{}*{}, {}", ours.plan->parts.size(), ours.plan->bands.size() - 1,
                         ours.plan->layouts.front().tiles.size());
  add_bounds({problem, machine, matrix.blocks(), longest_column(matrix)}, cell);
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
        const auto matrix = tools::measured_pattern(side, {block, block}, 1 / double(share));
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
  if (matrix.blocks() == 0) return {};
  const std::string name = std::filesystem::path(path).stem().string();
  return cell_of(fmt::format("{:.40} {}", name, batch), matrix, batch, machine);
}

std::string heading_of_cells() {
  return "cycles of half products on bow: PopLibs' cut and ours, both counted; lower bounds of "
         "three\nsteps alone, in % of ours\n\n"
         " m=k blk den batch  PopLibs     ours ratio  kernel bytes wait  z*bands, tiles\n";
}

std::string to_text(const StaticCell& cell) {
  const auto percent = [&](std::int64_t part) { return 100 * double(part) / double(cell.ours); };
  return fmt::format("{:<17} {:8} {:8} {:.3f} {:6.0f} {:5.0f} {:5.0f}   {}\n", cell.name,
                     cell.popsparse, cell.ours, cell.ratio(), percent(cell.kernel),
                     percent(cell.bytes), percent(cell.barriers), cell.cut);
}

double mean_ratio(const std::vector<StaticCell>& cells) {
  double sum = 0;
  for (const StaticCell& cell : cells) sum += std::log(cell.ratio());
  return std::exp(sum / double(cells.size()));
}

double largest_ratio(const std::vector<StaticCell>& cells) {
  double largest = 0;
  for (const StaticCell& cell : cells) largest = std::max(largest, cell.ratio());
  return largest;
}

}  // namespace tessera::bench
