#include "tessera/planner/internal/static_counted.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass_steps.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"

namespace tessera::planner::internal {
namespace {

codelets::StaticKernel kernel_of(const StaticCase& c) {
  return {c.problem.block, c.problem.data_type};
}

// Returns the columns of a worker of an element kernel, and the number of groups of workers that
// take different rows.
std::pair<std::int64_t, std::int64_t> element_split(const StaticCase& c, std::int64_t rows,
                                                    std::int64_t columns) {
  const std::int64_t workers = c.machine.workers;
  if (rows > workers / 2 || columns % 8 != 0) return {columns, workers};
  return {round_up(columns / 2, c.grain()), workers / 2};
}

std::int64_t element_cycles(const StaticCase& c, const std::vector<RowOnTile>& rows,
                            std::int64_t columns) {
  const auto [own_columns, groups] = element_split(c, std::ssize(rows), columns);
  const bool one_row_each = groups == c.machine.workers && std::ssize(rows) <= groups;
  const auto cycles = codelets::static_worker_cycles(kernel_of(c), own_columns);
  std::int64_t all = 0, slowest = 0;
  for (const RowOnTile& row : rows) all += row.blocks;
  for (std::size_t next = 0; next < rows.size();) {
    std::int64_t own_rows = 0, blocks = 0;
    do {
      ++own_rows;
      blocks += rows[next++].blocks;
    } while (!one_row_each && next < rows.size() && blocks * groups < all);
    slowest = std::max(slowest, cycles(own_rows, blocks).value);
  }
  return c.machine.workers * slowest;
}

std::int64_t block_cycles(const StaticCase& c, const std::vector<RowOnTile>& rows,
                          std::int64_t columns) {
  std::int64_t blocks = 0;
  for (const RowOnTile& row : rows) blocks += row.blocks;
  const std::int64_t workers = c.machine.workers, bytes = c.data_bytes();
  const std::int64_t sums = std::ssize(rows) * c.problem.block.rows * columns * bytes;
  const auto worker = codelets::static_worker_cycles(kernel_of(c), ceil_div(columns, workers));
  return codelets::static_supervisor_cycles(kernel_of(c))(std::ssize(rows), blocks).value +
         workers * worker(std::ssize(rows), blocks).value +
         codelets::static_zero_cycles(kernel_of(c), sums, workers).value;
}

}  // namespace

LayoutRows rows_of(const StaticLayout& layout, const BlockPattern& pattern) {
  LayoutRows result;
  result.of_tile.resize(layout.tiles.size());
  result.depth.assign(std::size_t(pattern.block_rows), 0);
  for (std::int64_t row = 0; row < pattern.block_rows; ++row)
    for (std::int64_t i = pattern.row_begin[std::size_t(row)];
         i < pattern.row_begin[std::size_t(row) + 1]; ++i) {
      auto& rows = result.of_tile[std::size_t(layout.tile_of[std::size_t(i)])];
      if (rows.empty() || rows.back().row != row) {
        rows.push_back({row, 0});
        ++result.depth[std::size_t(row)];
      }
      ++rows.back().blocks;
    }
  return result;
}

std::int64_t counted_kernel_cycles(const StaticCase& c, const std::vector<RowOnTile>& rows,
                                   std::int64_t columns) {
  if (rows.empty()) return 0;
  return c.problem.is_element_wise() ? element_cycles(c, rows, columns)
                                     : block_cycles(c, rows, columns);
}

std::int64_t CountedSums::depth() const { return elements == 0 ? 0 : ceil_div(operands, elements); }

CountedSums sums_of(const StaticCase& c, const LayoutRows& rows, std::size_t tile,
                    std::int64_t columns) {
  CountedSums sums;
  for (const RowOnTile& row : rows.of_tile[tile]) {
    const std::int64_t depth = rows.depth[std::size_t(row.row)];
    if (depth == 1) continue;
    const std::int64_t share = ceil_div(c.problem.block.rows * columns, depth);
    sums.elements += share;
    sums.operands += share * depth;
  }
  return sums;
}

namespace {

// The largest figures of all tiles so far. A step takes as long as its slowest tile.
struct CountedCost {
  std::int64_t receive = 0, receive_values = 0, multiply = 0, receive_sums = 0,
               reduce = 0;                                                  // cycles
  std::int64_t operands = 0, with_values = 0, with_sums = 0, reducing = 0;  // bytes of a tile
  std::int64_t resident = 0;

  void add_tile(const StaticCase& c, const StaticTile& tile, const LayoutRows& rows,
                std::size_t index, const StaticPart& part, bool one_part);
};

std::int64_t word_bytes(const StaticCase& c, const StaticTile& tile) {
  const std::int64_t workers = c.machine.workers;
  const std::int64_t words = c.problem.is_element_wise()
                                 ? 6 * workers + tile.rows + tile.blocks
                                 : 2 * workers + 1 + 2 * tile.rows + tile.blocks;
  return words * (c.machine.word_bits / 8);
}

void CountedCost::add_tile(const StaticCase& c, const StaticTile& tile, const LayoutRows& rows,
                           std::size_t index, const StaticPart& part, bool one_part) {
  const BlockShape block = c.problem.block;
  const std::int64_t bytes = c.data_bytes(), width = c.machine.exchange_bytes_per_cycle;
  const std::int64_t values = tile.blocks * block.area() * bytes;
  const std::int64_t operand = tile.columns * block.cols * part.columns() * bytes;
  const std::int64_t fetched = one_part ? 0 : values;
  const std::int64_t sums = tile.rows * block.rows * part.columns() * bytes;
  const CountedSums added = sums_of(c, rows, index, part.columns());
  const std::int64_t others = (added.operands - added.elements) * bytes;
  const std::int64_t home = word_bytes(c, tile) + (one_part ? values : 0);
  receive = std::max(receive, c.machine.tiles == 1 ? 0 : ceil_div(operand, width));
  receive_values = std::max(receive_values, ceil_div(fetched, width));
  multiply = std::max(multiply, counted_kernel_cycles(c, rows.of_tile[index], part.columns()));
  receive_sums = std::max(receive_sums, ceil_div(others, width));
  if (added.elements > 0)
    reduce =
        std::max(reduce, codelets::reduce_cycles(added.elements, added.depth(), c.problem.data_type,
                                                 c.problem.data_type, c.machine.workers)
                             .value);
  operands = std::max(operands, operand);
  with_values = std::max(with_values, operand + fetched);
  with_sums = std::max(with_sums, operand + fetched + sums);
  reducing = std::max(reducing, sums + others + added.elements * bytes);
  resident = std::max(resident, home);
}

// Returns what all parts need together. Parts of the same size with the same layout cost the same.
CountedCost cost_of_parts(const StaticCase& c, const StaticPlan& plan,
                          const BlockPattern& pattern) {
  CountedCost cost;
  std::map<std::int64_t, LayoutRows> rows;
  std::set<std::pair<std::int64_t, std::int64_t>> done;
  for (const StaticPart& part : plan.parts) {
    if (!done.insert({part.layout, part.columns()}).second) continue;
    const StaticLayout& layout = plan.layouts[std::size_t(part.layout)];
    auto [it, is_new] = rows.try_emplace(part.layout);
    if (is_new) it->second = rows_of(layout, pattern);
    for (std::size_t tile = 0; tile < layout.tiles.size(); ++tile)
      cost.add_tile(c, layout.tiles[tile], it->second, tile, part, plan.parts.size() == 1);
  }
  return cost;
}

// S and Q are put in order, the kernel runs, and rows on several tiles are added. The values of a
// batch in several parts have no tile of their own, so they take an exchange besides that of S.
StepCounts steps_of(const StaticCase& c, const CountedCost& cost) {
  const bool adds = cost.reduce > 0;
  return {.barriers = (c.machine.tiles > 1) + (cost.receive_values > 0) + adds,
          .launches = adds ? 4 : 3};
}

}  // namespace

PlanCost counted_cost(const StaticCase& c, const StaticPlan& plan, const BlockPattern& pattern) {
  const CountedCost cost = cost_of_parts(c, plan, pattern);
  const Dims size = c.problem.size_in_blocks();
  const auto arrange = [&](std::int64_t rows) {
    return codelets::arrange_cycles(rows * c.columns() * c.data_bytes(), c.machine.tiles,
                                    c.machine.arrange_bytes_per_cycle);
  };
  const auto share = [&](std::int64_t rows) {
    return ceil_div(rows * c.columns() * c.data_bytes(), c.machine.tiles);
  };
  PlanCost total;
  PassCost pass{Pass::Fwd, {}};
  const auto add = [&pass](Term term, std::int64_t cycles, std::int64_t temp) {
    pass.terms.push_back({term, Cycles(cycles), Bytes(temp)});
  };
  add(Term::ArrangeOperands, arrange(size.y).value, share(size.y));
  add(Term::ExchangeOperands, cost.receive, cost.operands);
  add(Term::ExchangeAlongZ, cost.receive_values, cost.with_values);
  add(Term::Multiply, cost.multiply, cost.with_sums);
  add(Term::ExchangeSums, cost.receive_sums, cost.reducing);
  add(Term::ReduceSums, cost.reduce, cost.reducing);
  add(Term::ArrangeResult, arrange(size.x).value, share(size.x));
  add(Term::BarriersAndLaunches, waiting_cycles(c.machine, steps_of(c, cost)), 0);
  total.cycles = pass.cycles();
  total.temp = pass.temp();
  total.resident = Bytes(cost.resident + share(size.y) + share(size.x));
  total.passes.push_back(std::move(pass));
  return total;
}

}  // namespace tessera::planner::internal
