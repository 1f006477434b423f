#include "tessera/planner/internal/dense_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/selection_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/planner/internal/estimate.hpp"

namespace tessera::planner::internal {
namespace {

// One operand as one tile sees it in one round.
struct OperandSlice {
  std::int64_t bytes = 0;              // that the tile needs
  std::int64_t all = 0;                // of the whole operand, all rounds and groups
  std::int64_t takers = 1;             // tiles that need the slice
  bool neighbours = false;             // the takers are neighbours
  std::int64_t lines = 0, across = 0;  // elements of the slice in the caller's array
  bool transposed = false, reordered = false;

  std::int64_t ordered_bytes() const { return reordered ? bytes : 0; }
  // Returns the bytes of the share that the tile holds before the pass.
  std::int64_t home_bytes() const { return ceil_div(lines, takers) * (bytes / lines); }
};

struct Slices {
  OperandSlice left, right;
};

// The rounds in which tiles receive both operands, the left one alone, and the right one alone.
struct Fetches {
  std::int64_t both = 1, left = 0, right = 0;
};

// Returns the counts of is_fetched() over all rounds.
Fetches fetches_of(const ProductShape& rounds) {
  if (rounds.columns == 1) return {.left = rounds.rows - 1};
  return {.both = rounds.rows, .right = rounds.rows * (rounds.columns - 1)};
}

OperandSlice slice_of(const DenseCase& c, const DenseCut& cut, const ProductShape& tile,
                      Side side) {
  const DenseOperand operand = dense_operand(c.product, cut.weights, side);
  const auto elements = [&operand](const ProductShape& shape) {
    return shape.*operand.lines * shape.*operand.across;
  };
  return {.bytes = elements(tile) * c.data_bytes(),
          .all = c.groups * elements(c.product.size) * c.data_bytes(),
          .takers = cut.parts.*operand.absent,
          .neighbours = cut.neighbours == side,
          .lines = tile.*operand.lines,
          .across = tile.*operand.across,
          .transposed = operand.transposed,
          .reordered = operand.reordered};
}

std::int64_t receive_cycles(const device::Machine& machine,
                            std::initializer_list<OperandSlice> slices) {
  if (machine.tiles == 1) return 0;
  const std::int64_t width = machine.exchange_bytes_per_cycle, bus = machine.tiles_per_exchange_bus;
  std::int64_t alone = 0, shared = 0, senders = 0;
  for (const OperandSlice& s : slices) {
    (s.neighbours && bus > 1 && s.takers % bus == 0 ? shared : alone) += s.bytes;
    senders += even_spread_senders(machine, s.bytes, s.all);
  }
  return senders * machine.receive_start.value + ceil_div(alone, width) +
         ceil_div(shared, width * bus);
}

std::int64_t reorder_cycles(const DenseCase& c, const OperandSlice& slice) {
  if (!slice.reordered) return 0;
  return codelets::dense_reorder_cycles(c.kernel, slice.lines, slice.across, slice.transposed)
      .value;
}

// Returns the cycles of the slowest tile. The kernel takes longer for two rows of a worker than for
// three, so the smallest tile may be the slowest.
std::int64_t multiply_cycles(const DenseCase& c, const DenseCut& cut, const ProductShape& tile,
                             const ProductShape& smallest) {
  const bool right = cut.weights == Side::Right;
  const auto cycles = [&](std::int64_t field) {
    return codelets::dense_cycles(c.kernel, {field, tile.inner, right ? tile.columns : tile.rows});
  };
  return std::max(cycles(right ? tile.rows : tile.columns),
                  cycles(right ? smallest.rows : smallest.columns))
      .value;
}

// Returns the cycles of the slowest tile. A remainder of a vector costs an addition of its own, so
// a smaller share may take longer.
std::int64_t reduce_cycles(const DenseCase& c, std::int64_t depth, const ProductShape& tile,
                           const ProductShape& smallest) {
  Cycles most;
  for (const std::int64_t rows : {tile.rows, smallest.rows})
    for (const std::int64_t columns : {tile.columns, smallest.columns})
      for (const std::int64_t i : {std::int64_t{0}, depth - 1}) {
        const std::int64_t share = share_of(rows * columns, 1, depth, i).size();
        if (share == 0) continue;
        most = std::max(most, codelets::reduce_cycles(share, depth, c.kernel.partials_type,
                                                      c.kernel.data_type, c.machine.workers));
      }
  return most.value;
}

// The addition of the partial sums of the tiles along the inner dimension.
struct Sums {
  std::int64_t exchange = 0, compute = 0;             // cycles
  std::int64_t partials = 0, others = 0, result = 0;  // bytes
};

Sums sums_of(const DenseCase& c, const DenseCut& cut, const ProductShape& tile,
             const ProductShape& smallest) {
  const std::int64_t elements = tile.rows * tile.columns, depth = cut.parts.inner;
  const DataType from = c.kernel.partials_type, to = c.kernel.data_type;
  const std::int64_t workers = c.machine.workers;
  Sums sums{.partials = elements * c.sum_bytes()};
  if (depth == 1) {
    if (from == to || c.selection) return sums;
    sums.compute = codelets::cast_cycles(elements, from, to, workers).value;
    sums.result = elements * c.data_bytes();
    return sums;
  }
  const std::int64_t share = ceil_div(elements, depth), others = depth - 1;
  sums.others = others * share * c.sum_bytes();
  sums.result = share * c.data_bytes();
  sums.exchange = others * c.machine.receive_start.value +
                  ceil_div(sums.others, c.machine.exchange_bytes_per_cycle);
  sums.compute = reduce_cycles(c, depth, tile, smallest);
  return sums;
}

PassForm form_of(const DenseCase& c, const DenseCut& cut) {
  return {.pass = c.product.pass,
          .parts = {c.groups, cut.parts.rows, cut.parts.inner, cut.parts.columns},
          .fetches = c.machine.tiles > 1,
          .casts = c.kernel.partials_type != c.kernel.data_type || c.selection.has_value(),
          .dense_rounds = cut.rounds.product()};
}

}  // namespace

ProductShape dense_grain(const codelets::DenseKernel& kernel, Side weights) {
  const bool right = weights == Side::Right;
  return {right ? 1 : kernel.units, kernel.depth(), right ? kernel.units : 1};
}

ProductShape DenseCase::round_grain() const {
  if (!selection) return {};
  return {selection->block.rows, 1, selection->block.cols};
}

ProductShape DenseCase::grain(Side weights) const {
  const ProductShape kernel_grain = dense_grain(kernel, weights), blocks = round_grain();
  return {std::lcm(kernel_grain.rows, blocks.rows), kernel_grain.inner,
          std::lcm(kernel_grain.columns, blocks.columns)};
}

ProductShape DenseCase::round_size(const ProductShape& rounds) const {
  const ProductShape whole = round_grain();
  return {share_of(product.size.rows, whole.rows, rounds.rows, 0).size(), product.size.inner,
          share_of(product.size.columns, whole.columns, rounds.columns, 0).size()};
}

namespace {

// Returns the sizes of the tile of a round that has the first or the last share of every dimension.
ProductShape tile_of(const DenseCase& c, const DenseCut& cut, bool last) {
  const ProductShape grain = c.grain(cut.weights), size = c.round_size(cut.rounds);
  const auto share = [last](std::int64_t of_round, std::int64_t g, std::int64_t parts) {
    return share_of(of_round, g, parts, last ? parts - 1 : 0).size();
  };
  return {share(size.rows, grain.rows, cut.parts.rows),
          share(size.inner, grain.inner, cut.parts.inner),
          share(size.columns, grain.columns, cut.parts.columns)};
}

// The search for the best blocks on one tile, in all rounds.
struct SelectionCost {
  std::int64_t cycles = 0, resident = 0;
};

SelectionCost selection_of(const DenseCase& c, std::int64_t rounds, const ProductShape& tile) {
  if (!c.selection) return {};
  const auto& [block, keep, free_share] = *c.selection;
  const std::int64_t blocks = ceil_div(tile.rows, block.rows) * ceil_div(tile.columns, block.cols);
  const codelets::SelectionWork work =
      codelets::expected_selection(std::int64_t(free_share * double(rounds * blocks)), keep);
  const std::int64_t workers = c.machine.workers;
  const Cycles search =
                   codelets::selection_cycles({tile.rows * tile.columns, blocks, keep},
                                              {.added = ceil_div(work.added, rounds)}, workers),
               select = codelets::selection_cycles({.keep = keep}, {.selections = work.selections},
                                                   workers);
  return {rounds * search.value + select.value, rounds * ceil_div(blocks, 32) * 4 +
                                                    codelets::best_list_bytes(keep) +
                                                    codelets::kSelectionHeaderBytes};
}

}  // namespace

DenseEstimate dense_estimate(const DenseCase& c, const DenseCut& cut) {
  const ProductShape tile = tile_of(c, cut, /*last=*/false);
  const ProductShape smallest = tile_of(c, cut, /*last=*/true);
  const Slices s{slice_of(c, cut, tile, Side::Left), slice_of(c, cut, tile, Side::Right)};
  const Sums sums = sums_of(c, cut, tile, smallest);
  const std::int64_t arrived = s.left.bytes + s.right.bytes;
  const std::int64_t ordered = s.left.ordered_bytes() + s.right.ordered_bytes();
  const std::int64_t rounds = cut.rounds.product();
  const Fetches fetches = fetches_of(cut.rounds);
  const SelectionCost selection = selection_of(c, rounds, tile);
  const std::int64_t receive = fetches.both * receive_cycles(c.machine, {s.left, s.right}) +
                               fetches.left * receive_cycles(c.machine, {s.left}) +
                               fetches.right * receive_cycles(c.machine, {s.right});
  const std::int64_t reorder = (fetches.both + fetches.left) * reorder_cycles(c, s.left) +
                               (fetches.both + fetches.right) * reorder_cycles(c, s.right);
  // An operand that the next round uses again stays while the sums are added.
  const std::int64_t kept = rounds == 1 ? 0 : cut.rounds.columns > 1 ? s.left.bytes : s.right.bytes;
  DenseEstimate e;
  e.steps = {
      {{Term::ExchangeOperands, receive, arrived},
       {Term::RearrangeOperands, reorder, arrived + ordered},
       {Term::Multiply, rounds * multiply_cycles(c, cut, tile, smallest), arrived + sums.partials},
       {Term::ExchangeSums, rounds * sums.exchange, kept + sums.partials + sums.others},
       {Term::ReduceSums, rounds * sums.compute + selection.cycles,
        kept + sums.partials + sums.others + sums.result},
       {Term::BarriersAndLaunches, waiting_cycles(c.machine, counts_of(form_of(c, cut))), 0}}};
  for (const DenseStep& step : e.steps) {
    e.cycles += step.cycles;
    e.temp = std::max(e.temp, step.temp);
  }
  const std::int64_t result = sums.result > 0 ? sums.result : sums.partials;
  e.resident = cut.rounds.rows * s.left.home_bytes() + cut.rounds.columns * s.right.home_bytes() +
               (c.selection ? selection.resident : rounds * result);
  return e;
}

namespace {

// Returns the least cycles of the kernel for a slice of this size and for those whose field is
// longer, as a worker takes longer for one or two rows than for three.
std::int64_t least_multiply_cycles(const DenseCase& c, const codelets::DenseWork& work) {
  codelets::DenseWork longer = work;
  std::int64_t least = codelets::dense_cycles(c.kernel, work).value;
  for (const std::int64_t rows : {2, 3}) {
    longer.field = rows * c.kernel.workers;
    if (longer.field > work.field)
      least = std::min(least, codelets::dense_cycles(c.kernel, longer).value);
  }
  return least;
}

}  // namespace

// All tiles of an exchange bus receive together the operand that neighbours share, so the bound has
// the smaller operand alone. Sums are those of shares that are rounded down.
std::int64_t dense_lower_bound(const DenseCase& c, const DenseCut& cut, const ProductShape& tile) {
  const std::int64_t left = tile.rows * tile.inner * c.data_bytes();
  const std::int64_t right = tile.inner * tile.columns * c.data_bytes();
  const std::int64_t partials = tile.rows * tile.columns * c.sum_bytes();
  const std::int64_t rounds = cut.rounds.product();
  const std::int64_t fetches = cut.rounds.columns == 1 ? 1 : cut.rounds.rows;
  const std::int64_t others = cut.parts.inner - 1;
  const std::int64_t received =
      fetches * std::min(left, right) + rounds * others * (partials / cut.parts.inner);
  const std::int64_t multiply =
      cut.weights == Side::Right
          ? codelets::dense_cycles(c.kernel, {tile.rows, tile.inner, tile.columns}).value
          : least_multiply_cycles(c, {tile.columns, tile.inner, tile.rows});
  const std::int64_t exchange =
      c.machine.tiles == 1 ? 0 : received / c.machine.exchange_bytes_per_cycle;
  return exchange + rounds * multiply;
}

namespace {

// Returns the cycles in which a tile receives both operands in all rounds, with the better choice
// of the operand that neighbours share.
std::int64_t least_receive(const DenseCase& c, const DenseCut& cut, const ProductShape& tile) {
  const Fetches fetches = fetches_of(cut.rounds);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Side neighbours : {Side::Left, Side::Right}) {
    DenseCut with = cut;
    with.neighbours = neighbours;
    const OperandSlice left = slice_of(c, with, tile, Side::Left),
                       right = slice_of(c, with, tile, Side::Right);
    least = std::min(least, fetches.both * receive_cycles(c.machine, {left, right}) +
                                fetches.left * receive_cycles(c.machine, {left}) +
                                fetches.right * receive_cycles(c.machine, {right}));
  }
  return least;
}

}  // namespace

std::int64_t dense_close_bound(const DenseCase& c, const DenseCut& cut, const ProductShape& tile) {
  const Sums sums = sums_of(c, cut, tile, tile);
  return least_receive(c, cut, tile) +
         cut.rounds.product() *
             (multiply_cycles(c, cut, tile, tile) + sums.exchange + sums.compute) +
         waiting_cycles(c.machine, counts_of(form_of(c, cut)));
}

// The kernel is called for the longest field, because
// longer fields take fewer cycles for each row; a group of weights takes less in the first depth or
// in the later ones, whichever the kernel has it.
double cycles_of_multiply_add(const DenseCase& c) {
  const codelets::DenseKernel& kernel = c.kernel;
  const std::int64_t field =
      round_up(std::max(c.product.size.rows, c.product.size.columns), kernel.workers);
  const auto of_group = [&](std::int64_t inner) {
    const auto cycles = [&](std::int64_t columns) {
      return codelets::dense_cycles(kernel, {field, inner, columns});
    };
    return (cycles(2 * kernel.units) - cycles(kernel.units)).value;
  };
  const std::int64_t first = of_group(kernel.depth());
  const std::int64_t later = of_group(2 * kernel.depth()) - first;
  return double(std::min(first, later)) / double(field * kernel.depth() * kernel.units);
}

namespace {

// Returns the least bytes that a tile receives if the inner dimension has this many parts: of both
// operands, where all tiles of a bus share the cheaper half, and of the others' sums. The product
// of the two slices of a tile is the same for all cuts of rows and columns, so equal ones are best.
double least_received(const DenseCase& c, double tiles, std::int64_t inner_parts) {
  const ProductShape& size = c.product.size;
  const double results = double(size.rows) * double(size.columns), parts = double(inner_parts);
  const double bus = double(std::max<std::int64_t>(c.machine.tiles_per_exchange_bus, 1));
  const double slices = 2 * double(size.inner) * std::sqrt(results / (tiles * parts * bus));
  return slices * double(c.data_bytes()) + (parts - 1) * results / tiles * double(c.sum_bytes());
}

}  // namespace

std::int64_t dense_floor(const DenseCase& c) {
  const double tiles = double(c.machine.tiles) / double(c.groups);
  const double multiply = double(c.product.size.product()) / tiles * cycles_of_multiply_add(c);
  if (c.machine.tiles == 1) return std::int64_t(multiply);
  double bytes = least_received(c, tiles, 1);
  for (std::int64_t parts = 2; double(parts) <= tiles && parts <= c.product.size.inner; ++parts)
    bytes = std::min(bytes, least_received(c, tiles, parts));
  return std::int64_t(multiply + bytes / double(c.machine.exchange_bytes_per_cycle));
}

}  // namespace tessera::planner::internal

namespace tessera::planner {

PassForm dense_form(const DensePassPlan& plan, const DensePlan& layer,
                    const device::Machine& machine) {
  const internal::DenseCase c{
      .product = plan.product,
      .groups = layer.groups,
      .machine = machine,
      .kernel = dense_kernel(machine, layer.data_type, layer.partials_type)};
  return internal::form_of(c, {plan.rounds, plan.parts, plan.weights, plan.neighbours});
}

}  // namespace tessera::planner
