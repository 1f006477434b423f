#include "tessera/planner/internal/static_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_split.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/internal/static_counted.hpp"

namespace tessera::planner::internal {
namespace {

// The work of the mean tile if the blocks are spread at random.
struct MeanTile {
  double blocks = 0, rows = 0, columns = 0, depth = 1;
};

MeanTile mean_tile(const StaticCase& c, const CountedCut& cut) {
  const double density = c.counts.density();
  const double height = double(c.counts.usual_rows), all = double(c.counts.usual_columns);
  const double width = all / double(cut.bands), tiles = double(cut.tiles);
  const double in_row = std::max(density * width, 1e-9);
  MeanTile tile{.blocks = std::max(1.0, double(c.counts.blocks) / tiles)};
  const bool whole = cut.runs != RunKind::Even;
  // A row of a band has no block with this probability; others are one entry each.
  const double used = 1 - std::pow(1 - density, width);
  const double rows_of_band = std::max(height * used, 1e-9);
  const double tiles_of_band = tiles / double(cut.bands);
  tile.rows = std::max(1.0, rows_of_band / tiles_of_band + (whole ? 0 : 1));
  if (tile.blocks < in_row) tile.rows = whole ? 1.0 : 1.5;
  if (cut.runs == RunKind::UncutRows) tile.blocks = std::max(tile.blocks, in_row);
  if (whole && tile.rows > 1) {
    tile.rows = std::ceil(tile.rows);
    tile.blocks = std::max(tile.blocks, tile.rows * in_row / used);
  }
  tile.columns = std::min(tile.blocks, width * (1 - std::pow(1 - density, tile.rows)));
  tile.depth = std::max(1.0, tiles * tile.rows / height);
  return tile;
}

// Returns the same tile with rows and columns exchanged.
MeanTile transposed(const StaticCase& c, const CountedCut& cut, MeanTile tile) {
  std::swap(tile.rows, tile.columns);
  tile.depth = std::max(1.0, double(cut.tiles) * tile.rows / double(c.counts.usual_columns));
  return tile;
}

// Returns the cycles of arranging and waiting in a pass; results are not added.
std::int64_t fixed_cycles(const StaticCase& c, Pass pass, std::int64_t parts) {
  const Dims size = c.problem.size_in_blocks();
  const bool values_travel = (parts > 1 || c.grad_a_alone) && pass != Pass::GradW;
  return arrange_rows(c, size.x) + arrange_rows(c, size.y) +
         counted_waiting(c, pass, values_travel, false);
}

// Returns about the cycles of adding `operands` sums to `own` results, if there are several for
// each.
double sums_estimate(const StaticCase& c, double own, double depth) {
  if (depth <= 1.01) return 0;
  const auto reduce =
      codelets::reduce_cycles(std::int64_t(std::ceil(own)), std::int64_t(std::ceil(depth)),
                              c.problem.data_type, c.problem.data_type, c.machine.workers);
  const double bytes = own * (depth - 1) * double(c.data_bytes());
  return bytes / double(c.machine.exchange_bytes_per_cycle) + double(reduce.value) +
         double(counted_waiting(c, Pass::Fwd, false, true) -
                counted_waiting(c, Pass::Fwd, false, false));
}

// Returns about the cycles that a tile takes to begin with each sender of its rows.
double starts_estimate(const StaticCase& c, double bytes, Pass pass) {
  if (c.machine.receive_start.value == 0) return 0;
  const Dims size = c.problem.size_in_blocks();
  const std::int64_t rows = pass == Pass::GradA ? size.x : size.y;
  return double(
      even_spread_senders(c.machine, std::int64_t(bytes), rows * c.columns() * c.data_bytes()) *
      c.machine.receive_start.value);
}

// Returns about the cycles of Fwd, or of GradA with the transposed tile.
double product_estimate(const StaticCase& c, const CountedCut& cut, const MeanTile& tile,
                        Pass pass) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const auto workers = double(c.machine.workers);
  const bool elements = c.problem.is_element_wise();
  const auto worker = codelets::static_worker_cycles(
      kernel, elements ? cut.share : ceil_div(cut.share, c.machine.workers));
  const auto linear = [&](const codelets::LinearCycles& cycles, double cut_by) {
    return double(cycles.start) +
           (tile.rows * double(cycles.per_row) + tile.blocks * double(cycles.per_nonzero)) / cut_by;
  };
  const auto bytes = double(c.data_bytes()), width = double(c.machine.exchange_bytes_per_cycle);
  const auto columns = double(cut.share);
  const double sums = tile.rows * double(c.problem.block.rows) * columns;
  const double operand = tile.columns * double(c.problem.block.cols) * columns * bytes;
  double cycles = double(fixed_cycles(c, pass, cut.parts)) + starts_estimate(c, operand, pass) +
                  operand / width + linear(codelets::static_supervisor_cycles(kernel), 1) +
                  workers * linear(worker, elements ? workers : 1);
  if (cut.parts > 1 || c.grad_a_alone)
    cycles += tile.blocks * double(c.problem.block.area()) * bytes / width;
  return cycles + sums_estimate(c, sums / tile.depth, tile.depth);
}

// Returns about the cycles of GradW.
double gradient_estimate(const StaticCase& c, const CountedCut& cut, const MeanTile& tile) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const auto blocks = std::int64_t(std::ceil(tile.blocks / std::ceil(tile.rows)));
  const Cycles multiply = codelets::static_gradient_cycles(
      kernel, cut.share, c.machine.workers, [&](const auto& visit) {
        for (double row = 0; row < tile.rows; ++row) visit(blocks);
      });
  const double rows =
      tile.rows * double(c.problem.block.rows) + tile.columns * double(c.problem.block.cols);
  const double bytes = rows * double(cut.share) * double(c.data_bytes());
  const auto parts = double(cut.parts);
  return double(fixed_cycles(c, Pass::GradW, cut.parts)) + double(multiply.value) +
         bytes / double(c.machine.exchange_bytes_per_cycle) +
         sums_estimate(c, tile.blocks * double(c.problem.block.area()) / parts, parts);
}

// Returns cycles that a product falls below with no layout of the cut: the kernel and the values of
// the tile with the most blocks, which has the mean number at least.
std::int64_t least_product(const StaticCase& c, const CountedCut& cut) {
  const std::int64_t blocks = ceil_div(c.counts.blocks, cut.tiles);
  const std::int64_t values = cut.parts == 1 && !c.grad_a_alone
                                  ? 0
                                  : ceil_div(blocks * c.problem.block.area() * c.data_bytes(),
                                             c.machine.exchange_bytes_per_cycle);
  return values + least_kernel_cycles(c, cut.share, blocks);
}

}  // namespace

// Elements are shared by all workers; few rows are cut across the batch, and then half of the
// workers share them for half of the columns.
std::int64_t least_kernel_cycles(const StaticCase& c, std::int64_t share, std::int64_t blocks) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const std::int64_t workers = c.machine.workers;
  const auto worker = [&](std::int64_t z, std::int64_t count) {
    return workers * codelets::static_worker_cycles(kernel, z)(1, count).value;
  };
  if (!c.problem.is_element_wise())
    return codelets::static_supervisor_cycles(kernel)(1, blocks).value +
           worker(ceil_div(share, workers), blocks);
  return std::min(worker(share, ceil_div(blocks, workers)),
                  worker(round_up(ceil_div(share, 2), c.grain()), ceil_div(2 * blocks, workers)));
}

double estimated_cycles(const StaticCase& c, const CountedCut& cut) {
  const MeanTile tile = mean_tile(c, cut);
  if (c.grad_a_alone) return product_estimate(c, cut, tile, Pass::GradA);
  double cycles = product_estimate(c, cut, tile, Pass::Fwd);
  if (c.problem.grad_a) cycles += product_estimate(c, cut, transposed(c, cut, tile), Pass::GradA);
  if (c.problem.grad_w) cycles += gradient_estimate(c, cut, tile);
  return cycles;
}

namespace {

// Returns cycles that Fwd and GradW fall below with no layout of the cut.
std::int64_t least_forward(const StaticCase& c, const CountedCut& cut) {
  const std::int64_t fwd = fixed_cycles(c, Pass::Fwd, cut.parts) + least_product(c, cut);
  return fwd + (c.problem.grad_w ? fixed_cycles(c, Pass::GradW, cut.parts) : 0);
}

std::int64_t least_grad_a(const StaticCase& c, const CountedCut& cut) {
  return fixed_cycles(c, Pass::GradA, cut.parts) + least_product(c, cut);
}

}  // namespace

std::int64_t least_cycles(const StaticCase& c, const CountedCut& cut) {
  if (c.grad_a_alone) return least_grad_a(c, cut);
  return least_forward(c, cut) + (c.problem.grad_a ? least_grad_a(c, cut) : 0);
}

// GradA may have other parts of the batch than the other passes.
Cycles floor_of(const StaticCase& c) {
  std::int64_t forward = std::numeric_limits<std::int64_t>::max(), grad_a = forward;
  for_each_share(c, [&](const CountedCut& cut) {
    forward = std::min(forward, least_forward(c, cut));
    grad_a = std::min(grad_a, least_grad_a(c, cut));
  });
  return Cycles(forward + (c.problem.grad_a ? grad_a : 0));
}

}  // namespace tessera::planner::internal
