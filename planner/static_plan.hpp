#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan_cost.hpp"

// Plans for weights whose pattern is known when the plan is made and stays. Unlike plan(), which
// knows sizes and counts alone, the planner of static products gets the place of every block.
namespace tessera::planner {

// The places of the blocks of a matrix, as views of the caller's arrays, which must outlive it.
struct BlockPattern {
  BlockShape block;
  std::int64_t block_rows = 0, block_cols = 0;
  std::span<const std::int64_t> row_begin;  // [block_rows + 1] first position of each block row
  std::span<const std::int32_t> col;        // [blocks] block column, ascending in a block row

  std::int64_t blocks() const { return std::ssize(col); }
};

// Everything that a caller can choose about a static plan.
struct StaticOptions {
  // The share of a tile's memory that temporary data may take, in (0, 1].
  double available_memory_proportion = 0.6;

  // The number of parts of the batch and of bands of columns that the plan must have, if given. All
  // passes then have the blocks on the same tiles. Not for plans with PopLibs' prices. PopLibs
  // names them nSplit and numBands.
  std::optional<std::int64_t> z_parts, bands;

  // Plans as PopLibs does, with its prices: see plan_static_as_poplibs().
  bool poplibs_parity = false;

  friend bool operator==(const StaticOptions&, const StaticOptions&) = default;
};

// The work of one tile: how many blocks it has, in how many block rows and block columns.
struct StaticTile {
  std::int64_t blocks = 0, rows = 0, columns = 0;

  friend bool operator==(const StaticTile&, const StaticTile&) = default;
};

// A distribution of all blocks over tiles. Parts of the batch with equally many tiles have the same
// one.
struct StaticLayout {
  std::vector<std::int32_t> tile_of;  // [blocks] tile of each block, from the part's first tile on
  std::vector<StaticTile> tiles;      // [tiles of the part]

  friend bool operator==(const StaticLayout&, const StaticLayout&) = default;
};

// A range of batch columns and the tiles that multiply it.
struct StaticPart {
  std::int64_t begin = 0, end = 0;  // columns; the last end is a multiple of the vector width
  std::int64_t first_tile = 0;
  std::int64_t layout = 0;  // index of the part's StaticLayout

  friend bool operator==(const StaticPart&, const StaticPart&) = default;
  std::int64_t columns() const { return end - begin; }
};

// The tiles of the blocks. The blocks are cut into bands of block columns with about equally many
// blocks; within a band they are ordered by row, and every tile takes a run of equally many blocks,
// so a row may end on one tile and go on on the next. All parts of the batch have the same bands.
struct StaticAssignment {
  std::int64_t z_parts = 1;  // wanted; as shares are whole vectors, there may be fewer `parts`
  std::vector<std::int64_t> bands = {0};  // [bands + 1] first block column of each band
  std::vector<StaticPart> parts;
  std::vector<StaticLayout> layouts;

  friend bool operator==(const StaticAssignment&, const StaticAssignment&) = default;

  // Returns the number of tiles of all parts.
  std::int64_t tiles_used() const;
};

// Blocks whose gradients the same tiles have, one of each part of the batch: neighbours on a tile
// of the first part that are neighbours on a tile of every other part. The tiles of a run share the
// sums of its values in GradW, and store these values.
struct GradientRun {
  std::size_t first = 0;  // the first block, in the order of the pattern
  std::int64_t blocks = 0;
};

// The runs of an assignment, and where its blocks are in them.
struct GradientRuns {
  std::vector<GradientRun> runs;                  // tile after tile of the first part
  std::vector<std::vector<std::int64_t>> places;  // [layouts][blocks] in the list of a block's tile
};

// Returns the runs of an assignment, which is that of a checked plan. O(blocks * layouts).
GradientRuns gradient_runs(const StaticAssignment& assignment);

// The plan of a layer with a static pattern: the tiles of the blocks in all passes.
struct StaticPlan : StaticAssignment {
  DataType data_type = DataType::Half;  // of values, operands and sums

  // The tiles of GradA alone, where they differ from those of the other passes: its bands are of
  // block rows, and within them blocks are ordered by column. Values are stored where GradW
  // computes their gradients, so each pass of GradA first brings them to these tiles.
  std::optional<StaticAssignment> grad_a;
  PlanCost cost;  // bytes of `resident` are 0 under PopLibs' prices, which do not count them

  // Returns the tiles of a pass.
  const StaticAssignment& assignment(Pass pass) const {
    return pass == Pass::GradA && grad_a ? *grad_a : *this;
  }

  friend bool operator==(const StaticPlan&, const StaticPlan&) = default;
};

// The way in which the tiles of a band get their blocks.
enum class RunKind {
  Even,       // equally many blocks each; rows are cut
  WholeRows,  // only rows longer than a run are cut; runs are even in blocks
  LightRows,  // as WholeRows, but a row counts as half a block besides its blocks
  UncutRows   // no row is cut
};

// "even runs", "whole rows", "light rows", "uncut rows".
std::string to_string(RunKind kind);

// A cut that was counted and is not the plan. All parts of its batch have equally many tiles.
struct StaticRunnerUp {
  std::int64_t z_parts = 1, bands = 1;
  std::int64_t tiles = 1;  // that a part may use
  RunKind runs = RunKind::Even;
  Cycles cycles;
  Bytes temp;

  friend bool operator==(const StaticRunnerUp&, const StaticRunnerUp&) = default;
};

// The plan, or the reason why there is none.
struct StaticPlanResult {
  std::optional<StaticPlan> plan;
  std::string reason;                      // empty if there is a plan
  std::int64_t evaluations = 0;            // cuts whose cost was computed
  std::vector<StaticRunnerUp> runner_ups;  // the five cheapest others that fit, of plan_static()
};

// The cost of a cut, or the reason why there is none.
struct StaticCostResult {
  std::optional<PlanCost> cost;
  std::int64_t tiles = 0;  // that all parts of the batch may use
  std::string reason;      // empty if there is a cost
};

// Plans the passes of a layer whose pattern stays. Fwd and GradW have the blocks on the same tiles,
// and GradA as well unless tiles of its own take fewer cycles, with the values brought there. A cut
// divides the batch into parts of equal tiles, the columns into bands, and the blocks of each band
// into runs, one for each tile, which are equally long or end where rows end. Cuts are priced with
// counts of the pattern, as count_static_cost() returns them, and the one with the fewest cycles of
// all passes of those looked at is returned; PopLibs' cut is one of them. Sums
// have the type of the data; the density and the type of sums of the problem are not used. A plan
// keeps to the memory that the options allow, to that of a tile, and to words of 16 bits. Throws
// Error{InvalidArgument} for an invalid problem, machine, option or pattern, for groups, and for
// blocks without a static kernel. Deterministic. Takes about a second per million blocks and less
// for fewer; a problem with GradA takes about four times as long. Thread-safe.
StaticPlanResult plan_static(const Problem& problem, const BlockPattern& pattern,
                             const device::Machine& machine, const StaticOptions& options = {});

// Plans one pattern for several batches, passes, types or machines, as plan_static() does. The
// first plan is that of plan_static(). It teaches the planner how wrong estimates of this pattern's
// cuts are, so that later plans of the same passes count fewer cuts: they take less than half of
// the time, and cost up to some percent more or less. One thread at a time may use it.
class StaticPlanner {
 public:
  // The arrays of `pattern` must outlive the planner. Throws Error{InvalidArgument} if they are no
  // pattern.
  explicit StaticPlanner(const BlockPattern& pattern);
  ~StaticPlanner();
  StaticPlanner(StaticPlanner&&) noexcept;

  // Returns a plan as plan_static() does; it depends on the plans made before.
  StaticPlanResult plan(const Problem& problem, const device::Machine& machine,
                        const StaticOptions& options = {});

  // Returns the cost of a good cut, mostly within 2 % of the plan's: the cheapest of 12 to 48 that
  // are counted as those of plan() are. PopLibs' cut is not among them, and no layout is made.
  // Takes a small part of the time of plan(), for studies of many patterns. Throws as plan_static()
  // does, and for options that ask for PopLibs' prices.
  StaticCostResult quick_cost(const Problem& problem, const device::Machine& machine,
                              const StaticOptions& options = {});

 private:
  struct State;
  MovableState<State> state_;
};

// Plans Fwd as PopLibs plans static products, with its prices. It takes the blocks to be spread at
// random with the density of the pattern, so that a tile has the expected number of rows and
// columns and one standard deviation more; rows and columns with at most a tenth of the mean number
// of blocks are left out of this expectation. The search tries up to 32 parts of the batch and up
// to 128 bands of columns, gives tiles in pairs that share an exchange bus, and takes the first of
// the cheapest pairs that keep to the memory. Sums have the type of the data; the density and the
// type of sums of the problem are not used. Throws Error{InvalidArgument} for an invalid problem,
// machine, option or pattern, for groups, and for blocks without a static kernel. Takes
// milliseconds per million blocks. Thread-safe.
StaticPlanResult plan_static_as_poplibs(const Problem& problem, const BlockPattern& pattern,
                                        const device::Machine& machine,
                                        const StaticOptions& options = {});

// Returns the cost of the problem's passes with the counts of the plan's pattern and the prices of
// the machine: no term is expected or assumed. The cycles are those of runtime::StaticLayer.
//
// Operands and the results of Fwd and GradA are spread evenly over all tiles. Tiles receive the
// rows that they use and, in Fwd and GradA of a batch in several parts, their values. Results that
// several tiles have in parts are added by these, each its share; a tile adds its shares as one
// list whose number of operands is the mean, rounded up. In GradA tiles first write their blocks
// transposed; if GradA has tiles of its own, they receive their values before, as if these were
// spread evenly over all tiles. GradW adds gradients only if the batch is in several parts.
// `resident` counts values, the words of the kernels, and the tile's shares of S and Q. Throws
// Error{InvalidArgument} as the planner does and for a plan of another pattern. Takes time in
// proportion to the blocks, for each size of parts.
PlanCost count_static_cost(const StaticPlan& plan, const Problem& problem,
                           const BlockPattern& pattern, const device::Machine& machine);

// Cycles of Fwd that no distribution of the blocks over tiles falls below, if all parts of the
// batch have equally many tiles: each by one kind of step alone, with the number of parts that
// suits it best.
struct StaticBounds {
  Cycles kernel;   // of a tile with the mean number of blocks, in one row
  Cycles bytes;    // arranging, and the values and columns that such a tile needs at least
  Cycles waiting;  // one barrier and three launches

  friend bool operator==(const StaticBounds&, const StaticBounds&) = default;
};

// Returns these bounds; zeros for a pattern without blocks. Errors as plan_static(). O(blocks).
StaticBounds static_bounds(const Problem& problem, const BlockPattern& pattern,
                           const device::Machine& machine);

// Returns cycles of all passes together that no plan with equal parts of the batch falls below for
// a pattern of so many blocks, wherever they are: kernels, values, arranging and waiting. Throws
// Error{InvalidArgument} as plan_static() does and for a negative number of blocks. O(tiles).
Cycles static_floor(const Problem& problem, const device::Machine& machine, std::int64_t blocks);

// Returns the plan as JSON text, for reports: a static plan belongs to one pattern, and is made
// again with it.
std::string to_json(const StaticPlan& plan);

// Returns the plan as text: its cut and its terms, one line each.
std::string to_string(const StaticPlan& plan);

}  // namespace tessera::planner
