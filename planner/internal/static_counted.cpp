#include "tessera/planner/internal/static_counted.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass_steps.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/layouts.hpp"

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

std::int64_t element_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
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

std::int64_t block_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
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

std::int64_t counted_kernel_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
                                   std::int64_t columns) {
  if (rows.empty()) return 0;
  return c.problem.is_element_wise() ? element_cycles(c, rows, columns)
                                     : block_cycles(c, rows, columns);
}

namespace {

// The sums that a tile adds after the kernel: of every row that lies on several tiles, each of them
// adds an equal share of the elements.
struct CountedSums {
  std::int64_t elements = 0;  // results of the tile
  std::int64_t operands = 0;  // sums that it adds, its own included

  // Returns the mean number of sums for an element, rounded up; 0 without elements.
  std::int64_t depth() const { return elements == 0 ? 0 : ceil_div(operands, elements); }
};

// Returns the elements of a row that each tile adds, by the number of tiles that have the row.
std::vector<std::int64_t> shares_of_rows(const StaticCase& c, const StaticLoad& load,
                                         std::int64_t columns) {
  const std::int64_t deepest = load.depth.empty() ? 0 : std::ranges::max(load.depth);
  std::vector<std::int64_t> shares(std::size_t(deepest) + 1, 0);
  for (std::int64_t depth = 2; depth <= deepest; ++depth)
    shares[std::size_t(depth)] = ceil_div(c.problem.block.rows * columns, depth);
  return shares;
}

CountedSums sums_of(const StaticLoad& load, std::size_t tile,
                    const std::vector<std::int64_t>& shares) {
  CountedSums sums;
  for (const RowOnTile& row : load.rows_of(tile)) {
    const std::int64_t depth = load.depth[std::size_t(row.row)];
    const std::int64_t share = shares[std::size_t(depth)];
    sums.elements += share;
    sums.operands += share * depth;
  }
  return sums;
}

std::int64_t words_of(const StaticCase& c, const StaticTile& tile) {
  const std::int64_t workers = c.machine.workers;
  return c.problem.is_element_wise() ? 6 * workers + tile.rows + tile.blocks
                                     : 2 * workers + 1 + 2 * tile.rows + tile.blocks;
}

// Returns the largest offset of a column or a row: bytes, or for blocks units of 8 bytes. Kernels
// of elements count rows without words.
std::int64_t offset_of(const StaticCase& c, const StaticTile& tile, std::int64_t columns) {
  const BlockShape block = c.problem.block;
  const std::int64_t row_bytes = columns * c.data_bytes();
  const std::int64_t last_column = (tile.columns - 1) * block.cols * row_bytes;
  if (block.is_element()) return last_column;
  constexpr std::int64_t kUnit = 8;
  return std::max(last_column, (tile.rows - 1) * block.rows * row_bytes) / kUnit;
}

CountedCost cost_of_tile(const StaticCase& c, const StaticLoad& load, std::size_t index,
                         std::int64_t columns, bool one_part, const CountedSums& added) {
  const StaticTile& tile = load.tiles[index];
  const BlockShape block = c.problem.block;
  const std::int64_t bytes = c.data_bytes(), width = c.machine.exchange_bytes_per_cycle;
  const std::int64_t values = tile.blocks * block.area() * bytes;
  const std::int64_t operand = tile.columns * block.cols * columns * bytes;
  const std::int64_t fetched = one_part ? 0 : values;
  const std::int64_t sums = tile.rows * block.rows * columns * bytes;
  const std::int64_t others = (added.operands - added.elements) * bytes;
  CountedCost cost;
  cost.receive = c.machine.tiles == 1 ? 0 : ceil_div(operand, width);
  cost.receive_values = ceil_div(fetched, width);
  cost.multiply = counted_kernel_cycles(c, load.rows_of(index), columns);
  cost.receive_sums = ceil_div(others, width);
  if (added.elements > 0)
    cost.reduce = codelets::reduce_cycles(added.elements, added.depth(), c.problem.data_type,
                                          c.problem.data_type, c.machine.workers)
                      .value;
  cost.operands = operand;
  cost.with_values = operand + fetched;
  cost.with_sums = operand + fetched + sums;
  cost.reducing = sums + others + added.elements * bytes;
  cost.words = words_of(c, tile);
  cost.offset = tile.blocks == 0 ? 0 : offset_of(c, tile, columns);
  cost.home = cost.words * (c.machine.word_bits / 8) + (one_part ? values : 0);
  return cost;
}

// Returns the bytes of a tile's even share of an operand.
std::int64_t share_of_rows(const StaticCase& c, std::int64_t rows) {
  return ceil_div(rows * c.columns() * c.data_bytes(), c.machine.tiles);
}

// Adds what a tile needs to write its blocks transposed: it finds them by a table.
void add_transpose(const StaticCase& c, std::int64_t blocks, CountedCost& cost) {
  if (blocks == 0) return;
  const BlockShape block = c.problem.block;
  const std::int64_t turned = blocks * block.area() * c.data_bytes();
  cost.transpose = unpack_cycles(blocks, c.machine).value;
  if (!block.is_element())
    cost.transpose +=
        codelets::transpose_blocks_cycles(blocks, block, c.problem.data_type, c.machine.workers)
            .value;
  cost.with_turned = cost.with_values + turned;
  cost.with_sums += turned;
}

}  // namespace

void CountedCost::include(const CountedCost& other) {
  const auto raise = [](std::int64_t& figure, std::int64_t to) { figure = std::max(figure, to); };
  raise(receive, other.receive);
  raise(receive_values, other.receive_values);
  raise(multiply, other.multiply);
  raise(receive_sums, other.receive_sums);
  raise(reduce, other.reduce);
  raise(operands, other.operands);
  raise(with_values, other.with_values);
  raise(with_sums, other.with_sums);
  raise(reducing, other.reducing);
  raise(transpose, other.transpose);
  raise(with_turned, other.with_turned);
  raise(home, other.home);
  raise(words, other.words);
  raise(offset, other.offset);
}

std::int64_t CountedCost::temp() const { return std::max(with_sums, reducing); }

CountedCost cost_of_load(const StaticCase& c, const StaticLoad& load, std::int64_t columns,
                         bool one_part, Pass pass) {
  const std::vector<std::int64_t> shares = shares_of_rows(c, load, columns);
  CountedCost cost;
  for (std::size_t tile = 0; tile < load.tiles.size(); ++tile) {
    CountedCost of_tile =
        cost_of_tile(c, load, tile, columns, one_part, sums_of(load, tile, shares));
    if (pass == Pass::GradA) add_transpose(c, load.tiles[tile].blocks, of_tile);
    cost.include(of_tile);
  }
  return cost;
}

CountedCost counted_parts(const StaticCase& c, const StaticPlan& plan, const BlockPattern& pattern,
                          Pass pass) {
  CountedCost cost;
  std::map<std::int64_t, StaticLoad> loads;
  // Parts of the same size with the same layout need the same.
  std::set<std::pair<std::int64_t, std::int64_t>> done;
  for (const StaticPart& part : plan.parts) {
    if (!done.insert({part.layout, part.columns()}).second) continue;
    auto [it, is_new] = loads.try_emplace(part.layout);
    const StaticLayout& layout = plan.layouts[std::size_t(part.layout)];
    if (is_new)
      it->second =
          pass == Pass::GradA ? load_of_transpose(layout, pattern) : load_of(layout, pattern);
    cost.include(cost_of_load(c, it->second, part.columns(), plan.parts.size() == 1, pass));
  }
  return cost;
}

std::int64_t counted_waiting(const StaticCase& c, bool values_travel, bool adds) {
  return waiting_cycles(c.machine, {.barriers = (c.machine.tiles > 1) + values_travel + adds,
                                    .launches = adds ? 4 : 3});
}

PassCost pass_cost_of(const StaticCase& c, const CountedCost& cost, Pass pass) {
  const Dims size = c.problem.size_in_blocks();
  const std::int64_t in = pass == Pass::GradA ? size.x : size.y;
  const std::int64_t out = pass == Pass::GradA ? size.y : size.x;
  const auto arrange = [&](std::int64_t rows) {
    return codelets::arrange_cycles(rows * c.columns() * c.data_bytes(), c.machine.tiles,
                                    c.machine.arrange_bytes_per_cycle)
        .value;
  };
  PassCost result{pass, {}};
  const auto add = [&result](Term term, std::int64_t cycles, std::int64_t temp) {
    result.terms.push_back({term, Cycles(cycles), Bytes(temp)});
  };
  const bool transposes = cost.transpose > 0;
  add(Term::ArrangeOperands, arrange(in), share_of_rows(c, in));
  add(Term::ExchangeOperands, cost.receive, cost.operands);
  add(Term::ExchangeAlongZ, cost.receive_values, cost.with_values);
  if (transposes) add(Term::TransposeValues, cost.transpose, cost.with_turned);
  add(Term::Multiply, cost.multiply, cost.with_sums);
  add(Term::ExchangeSums, cost.receive_sums, cost.reducing);
  add(Term::ReduceSums, cost.reduce, cost.reducing);
  add(Term::ArrangeResult, arrange(out), share_of_rows(c, out));
  add(Term::BarriersAndLaunches,
      counted_waiting(c, cost.receive_values > 0, cost.reduce > 0) +
          (transposes ? c.machine.launch.value : 0),
      0);
  return result;
}

PlanCost plan_cost_of(const StaticCase& c, const CountedCost& cost) {
  const Dims size = c.problem.size_in_blocks();
  const PassCost fwd = pass_cost_of(c, cost, Pass::Fwd);
  PlanCost total{.cycles = fwd.cycles(), .temp = fwd.temp(), .resident = {}, .passes = {fwd}};
  total.resident = Bytes(cost.home + share_of_rows(c, size.y) + share_of_rows(c, size.x));
  return total;
}

}  // namespace tessera::planner::internal
