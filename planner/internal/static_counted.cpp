#include "tessera/planner/internal/static_counted.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass_steps.hpp"
#include "tessera/codelets/cost/static_split.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/internal/estimate.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner::internal {
namespace {

codelets::StaticKernel kernel_of(const StaticCase& c) {
  return {c.problem.block, c.problem.data_type};
}

std::int64_t blocks_of(std::span<const RowOnTile> rows) {
  std::int64_t blocks = 0;
  for (const RowOnTile& row : rows) blocks += row.blocks;
  return blocks;
}

Cycles element_cycles(const StaticCase& c, std::span<const RowOnTile> rows, std::int64_t columns) {
  const auto split =
      codelets::element_split(std::ssize(rows), columns, c.grain(), c.machine.workers);
  const auto cycles = codelets::static_worker_cycles(kernel_of(c), split.z);
  Cycles slowest;
  codelets::deal_rows(
      split, std::ssize(rows), blocks_of(rows),
      [&](std::int64_t row) { return rows[std::size_t(row)].blocks; },
      [&](Range own, std::int64_t blocks) {
        slowest = std::max(slowest, cycles(own.size(), blocks));
      });
  return c.machine.workers * slowest;
}

std::int64_t gradient_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
                             std::int64_t columns) {
  if (rows.empty()) return 0;
  return codelets::static_gradient_cycles(kernel_of(c), columns, c.machine.workers,
                                          [rows](const auto& visit) {
                                            for (const RowOnTile& row : rows) visit(row.blocks);
                                          })
      .value;
}

}  // namespace

std::int64_t counted_kernel_cycles(const StaticCase& c, std::span<const RowOnTile> rows,
                                   std::int64_t columns) {
  if (rows.empty()) return 0;
  if (c.problem.is_element_wise()) return element_cycles(c, rows, columns).value;
  return codelets::static_block_cycles(kernel_of(c), std::ssize(rows), blocks_of(rows), columns,
                                       c.machine.workers)
      .value;
}

namespace {

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

// Returns the cycles in which a tile receives `bytes` of `all` that are spread over all tiles.
std::int64_t receive_spread(const StaticCase& c, std::int64_t bytes, std::int64_t all) {
  return even_spread_senders(c.machine, bytes, all) * c.machine.receive_start.value +
         ceil_div(bytes, c.machine.exchange_bytes_per_cycle);
}

std::int64_t operand_bytes(const StaticCase& c, std::int64_t rows) {
  return rows * c.columns() * c.data_bytes();
}

CountedCost cost_of_tile(const StaticCase& c, const StaticLoad& load, std::size_t index,
                         const PartOfBatch& part, Pass pass, const CountedSums& added) {
  const StaticTile& tile = load.tiles[index];
  const BlockShape block = c.problem.block;
  const std::int64_t bytes = c.data_bytes(), columns = part.columns;
  const Dims size = c.problem.size_in_blocks();
  const std::int64_t values = tile.blocks * block.area() * bytes;
  const std::int64_t operand = tile.columns * block.cols * columns * bytes;
  const std::int64_t fetched = part.brings_values() && c.machine.tiles > 1 ? values : 0;
  const std::int64_t sums = tile.rows * block.rows * columns * bytes;
  CountedCost cost;
  if (c.machine.tiles > 1)
    cost.receive =
        receive_spread(c, operand, operand_bytes(c, pass == Pass::GradA ? size.x : size.y));
  cost.receive_values = receive_spread(c, fetched, c.counts.blocks * block.area() * bytes);
  cost.multiply = counted_kernel_cycles(c, load.rows_of(index), columns);
  cost.add_sums(c, added);
  cost.operands = operand;
  cost.with_values = operand + fetched;
  cost.with_sums = operand + fetched + sums;
  cost.reducing = sums + added.operands * bytes;
  cost.words = words_of(c, tile);
  cost.offset = tile.blocks == 0 ? 0 : offset_of(c, tile, columns);
  cost.home = cost.words * (c.machine.word_bits / 8) +
              share_of(tile.blocks * block.area(), 1, part.parts, 0).size() * bytes;
  return cost;
}

// An entry of the table by which GradA finds a block.
constexpr std::int64_t kTableBytes = 4;

// Returns the bytes of a tile's even share of an operand.
std::int64_t share_of_rows(const StaticCase& c, std::int64_t rows) {
  return ceil_div(operand_bytes(c, rows), c.machine.tiles);
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
  cost.home = cost.words * (c.machine.word_bits / 8) + blocks * kTableBytes;
}

// Both operands arrive in one exchange.
std::int64_t receive_gradient_operands(const StaticCase& c, const StaticTile& tile,
                                       std::int64_t columns) {
  const BlockShape block = c.problem.block;
  const Dims size = c.problem.size_in_blocks();
  const std::int64_t bytes_of_row = columns * c.data_bytes();
  const std::int64_t of_q = tile.rows * block.rows * bytes_of_row;
  const std::int64_t of_s = tile.columns * block.cols * bytes_of_row;
  const std::int64_t senders = even_spread_senders(c.machine, of_q, operand_bytes(c, size.x)) +
                               even_spread_senders(c.machine, of_s, operand_bytes(c, size.y));
  return senders * c.machine.receive_start.value +
         ceil_div(of_q + of_s, c.machine.exchange_bytes_per_cycle);
}

// The gradients of a tile's values, with the words of Fwd.
CountedCost gradient_of_tile(const StaticCase& c, const StaticLoad& load, std::size_t index,
                             std::int64_t columns, const CountedSums& added) {
  const StaticTile& tile = load.tiles[index];
  const BlockShape block = c.problem.block;
  const std::int64_t bytes = c.data_bytes();
  const std::int64_t rows = tile.rows * block.rows + tile.columns * block.cols;
  const std::int64_t gradients = tile.blocks * block.area() * bytes;
  CountedCost cost;
  cost.operands = rows * columns * bytes;
  if (c.machine.tiles > 1) cost.receive = receive_gradient_operands(c, tile, columns);
  cost.multiply = gradient_cycles(c, load.rows_of(index), columns);
  cost.add_sums(c, added);
  cost.with_values = cost.operands;
  cost.with_sums = cost.operands + gradients;
  cost.reducing = gradients + added.operands * bytes;
  return cost;
}

}  // namespace

void CountedCost::add_sums(const StaticCase& c, const CountedSums& sums) {
  // The tiles with the last, smallest shares send more than they receive.
  const std::int64_t width = c.machine.exchange_bytes_per_cycle;
  receive_sums = std::max(sums.senders * c.machine.receive_start.value +
                              ceil_div(sums.others() * c.data_bytes(), width),
                          ceil_div(sums.sent * c.data_bytes(), width));
  if (sums.elements == 0) return;
  reduce = codelets::reduce_cycles(sums.elements, sums.depth(), c.problem.data_type,
                                   c.problem.data_type, c.machine.workers)
               .value;
}

void CountedCost::include(const CountedCost& other) {
  using C = CountedCost;
  for (std::int64_t C::* figure :
       {&C::receive, &C::receive_values, &C::multiply, &C::receive_sums, &C::reduce, &C::operands,
        &C::with_values, &C::with_sums, &C::reducing, &C::transpose, &C::with_turned, &C::home,
        &C::words, &C::offset})
    this->*figure = std::max(this->*figure, other.*figure);
}

CountedCost cost_of_load(const StaticCase& c, const StaticLoad& load, const PartOfBatch& part,
                         Pass pass) {
  RowShares shares(c, load, part.columns);
  CountedCost cost;
  for (std::size_t tile = 0; tile < load.tiles.size(); ++tile) {
    CountedCost of_tile = cost_of_tile(c, load, tile, part, pass, shares.next_tile());
    if (pass == Pass::GradA) add_transpose(c, load.tiles[tile].blocks, of_tile);
    cost.include(of_tile);
  }
  return cost;
}

bool CountedPasses::fits_words() const {
  constexpr std::int64_t kMostOfWord = 65535;
  return largest_word() <= kMostOfWord;
}

std::int64_t CountedPasses::largest_word() const {
  return std::max({fwd.words, fwd.offset, grad_a.words, grad_a.offset});
}

CountedPasses counted_cut(const StaticCase& c, const CutLoads& loads, std::int64_t columns,
                          std::int64_t parts) {
  const StaticLoad& load = loads.load;
  const PartOfBatch of_batch{columns, parts, c.grad_a_alone};
  if (c.grad_a_alone)
    return {.fwd = {}, .grad_a = cost_of_load(c, load, of_batch, Pass::GradA), .grad_w = {}};
  CountedPasses cost{.fwd = cost_of_load(c, load, of_batch), .grad_a = {}, .grad_w = {}};
  if (c.problem.grad_a)
    cost.grad_a = cost_of_load(c, loads.transposed.value(), of_batch, Pass::GradA);
  if (!c.problem.grad_w) return cost;
  for (std::size_t tile = 0; tile < load.tiles.size(); ++tile) {
    const std::int64_t values = load.tiles[tile].blocks * c.problem.block.area();
    CountedCost of_tile = gradient_of_tile(c, load, tile, columns, {});
    for (std::int64_t part = 0; part < parts; ++part) {
      of_tile.add_sums(c, gradient_sums(values, parts, part));
      cost.grad_w.include(of_tile);
    }
  }
  return cost;
}

namespace {

// Counts the layouts of a plan once each.
class LoadsOfPlan {
 public:
  LoadsOfPlan(const std::vector<StaticLayout>& layouts, const BlockPattern& pattern,
              bool transposed) {
    for (const StaticLayout& layout : layouts)
      loads_.push_back(transposed ? load_of_transpose(layout, pattern) : load_of(layout, pattern));
  }
  const StaticLoad& of(const StaticPart& part) const { return loads_[std::size_t(part.layout)]; }

 private:
  std::vector<StaticLoad> loads_;
};

// Parts of the same size with the same layout need the same.
CountedCost product_of_parts(const StaticCase& c, const std::vector<StaticPart>& parts,
                             const LoadsOfPlan& loads, Pass pass, bool away = false) {
  CountedCost cost;
  std::set<std::pair<std::int64_t, std::int64_t>> done;
  for (const StaticPart& part : parts)
    if (done.insert({part.layout, part.columns()}).second)
      cost.include(
          cost_of_load(c, loads.of(part), {part.columns(), std::ssize(parts), away}, pass));
  return cost;
}

CountedCost grad_a_of_plan(const StaticCase& c, const StaticPlan& plan,
                           const BlockPattern& pattern) {
  const StaticAssignment& tiles = plan.assignment(Pass::GradA);
  const LoadsOfPlan loads(tiles.layouts, pattern, /*transposed=*/true);
  return product_of_parts(c, tiles.parts, loads, Pass::GradA, plan.grad_a.has_value());
}

using SumsOfParts = std::vector<std::vector<CountedSums>>;

CountedCost gradient_of_parts(const StaticCase& c, const StaticPlan& plan, const LoadsOfPlan& loads,
                              const SumsOfParts& sums) {
  CountedCost cost;
  for (std::size_t p = 0; p < plan.parts.size(); ++p)
    for (std::size_t tile = 0; tile < sums[p].size(); ++tile)
      cost.include(gradient_of_tile(c, loads.of(plan.parts[p]), tile, plan.parts[p].columns(),
                                    sums[p][tile]));
  return cost;
}

// Returns the most bytes of words and values that a tile stores. Values are stored where GradW
// would add their gradients.
std::int64_t home_of_parts(const StaticCase& c, const StaticPlan& plan, const LoadsOfPlan& loads,
                           const SumsOfParts& sums) {
  std::int64_t most = 0;
  for (std::size_t p = 0; p < plan.parts.size(); ++p)
    for (std::size_t tile = 0; tile < sums[p].size(); ++tile) {
      const std::int64_t words = words_of(c, loads.of(plan.parts[p]).tiles[tile]);
      most = std::max(most,
                      words * (c.machine.word_bits / 8) + sums[p][tile].elements * c.data_bytes());
    }
  return most;
}

}  // namespace

CountedPasses counted_parts(const StaticCase& c, const StaticPlan& plan,
                            const BlockPattern& pattern) {
  const LoadsOfPlan loads(plan.layouts, pattern, /*transposed=*/false);
  CountedPasses cost{
      .fwd = product_of_parts(c, plan.parts, loads, Pass::Fwd), .grad_a = {}, .grad_w = {}};
  if (c.problem.grad_a) cost.grad_a = grad_a_of_plan(c, plan, pattern);
  // Parts with the same layout store equal shares of a tile's values.
  const bool unequal = plan.layouts.size() > 1;
  if (!c.problem.grad_w && !unequal) return cost;
  const SumsOfParts sums = gradient_sums(plan, pattern, c.machine.receive_start.value > 0);
  if (unequal) cost.fwd.home = home_of_parts(c, plan, loads, sums);
  if (c.problem.grad_w) cost.grad_w = gradient_of_parts(c, plan, loads, sums);
  return cost;
}

std::int64_t counted_waiting(const StaticCase& c, Pass pass, bool values_travel, bool adds) {
  const std::int64_t launches = pass == Pass::Fwd ? 3 : pass == Pass::GradA ? 4 : 2;
  return waiting_cycles(c.machine, {.barriers = (c.machine.tiles > 1) + values_travel + adds,
                                    .launches = launches + adds});
}

std::int64_t arrange_rows(const StaticCase& c, std::int64_t rows) {
  return codelets::arrange_cycles(operand_bytes(c, rows), c.machine.tiles,
                                  c.machine.arrange_bytes_per_cycle)
      .value;
}

PassCost pass_cost_of(const StaticCase& c, const CountedCost& cost, Pass pass) {
  const Dims size = c.problem.size_in_blocks();
  const bool gradient = pass == Pass::GradW;
  const std::int64_t in = gradient ? size.x + size.y : pass == Pass::GradA ? size.x : size.y;
  const std::int64_t out = pass == Pass::GradA ? size.y : size.x;
  PassCost result{pass, {}};
  const auto add = [&result](Term term, std::int64_t cycles, std::int64_t temp) {
    result.terms.push_back({term, Cycles(cycles), Bytes(temp)});
  };
  add(Term::ArrangeOperands, arrange_rows(c, in), share_of_rows(c, in));
  add(Term::ExchangeOperands, cost.receive, cost.operands);
  if (!gradient) add(Term::ExchangeAlongZ, cost.receive_values, cost.with_values);
  if (pass == Pass::GradA) add(Term::TransposeValues, cost.transpose, cost.with_turned);
  add(Term::Multiply, cost.multiply, cost.with_sums);
  add(Term::ExchangeSums, cost.receive_sums, cost.reducing);
  add(Term::ReduceSums, cost.reduce, cost.reducing);
  if (!gradient) add(Term::ArrangeResult, arrange_rows(c, out), share_of_rows(c, out));
  add(Term::BarriersAndLaunches, counted_waiting(c, pass, cost.receive_values > 0, cost.reduce > 0),
      0);
  return result;
}

PlanCost plan_cost_of(const StaticCase& c, const CountedPasses& cost) {
  const Dims size = c.problem.size_in_blocks();
  PlanCost total;
  if (!c.grad_a_alone) total.add(pass_cost_of(c, cost.fwd, Pass::Fwd));
  if (c.problem.grad_a) total.add(pass_cost_of(c, cost.grad_a, Pass::GradA));
  if (c.problem.grad_w && !c.grad_a_alone) total.add(pass_cost_of(c, cost.grad_w, Pass::GradW));
  total.resident = Bytes(cost.fwd.home + cost.grad_a.home);
  // Fwd has the shares of the operands already.
  if (!c.grad_a_alone) total.resident += Bytes(share_of_rows(c, size.y) + share_of_rows(c, size.x));
  return total;
}

}  // namespace tessera::planner::internal
