#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/pass_steps.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/planner/cost_term.hpp"
#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// Returns sizes of R as sizes of transpose(R), which GradA multiplies.
inline Dims swap_xy(Dims d) { return {d.g, d.y, d.x, d.z}; }

// Cycles and temporary bytes of one step of a pass.
struct Step {
  Term term = Term::Multiply;
  std::int64_t cycles = 0, temp = 0;
};

// The steps of one pass in running order. The array has a fixed size because the innermost loop of
// the search fills it.
struct PassEstimate {
  Pass pass = Pass::Fwd;
  std::array<Step, 12> steps;
  std::size_t count = 0;
  std::int64_t cycles = 0;  // sum
  std::int64_t temp = 0;    // largest
  StepCounts counts;        // by the table of steps

  void add(Term term, std::int64_t step_cycles, std::int64_t step_temp) {
    TESSERA_ASSERT(count < steps.size());
    steps[count++] = {term, step_cycles, step_temp};
    cycles += step_cycles;
    temp = std::max(temp, step_temp);
  }
};

struct Estimate {
  BucketSize bucket;
  std::array<PassEstimate, 3> passes;
  std::size_t pass_count = 0;
  std::int64_t cycles = 0, temp = 0, resident = 0;
};

// Returns the cost of every step of one cut. Pure; allocates until the lists of a thread have
// grown.
Estimate estimate(const Case& c, const Cut& cut, const BucketSize& bucket);

// The parts of estimate(), one for each pass.
PassEstimate estimate_fwd(const Case& c, const Cut& cut, const BucketSize& bucket);
PassEstimate estimate_grad_a(const Case& c, const Cut& cut, const BucketSize& bucket);
PassEstimate estimate_grad_w(const Case& c, const Cut& cut, const BucketSize& bucket);

// Returns the bytes of the even shares of both dense operands, of which every pass has its own.
std::int64_t operand_shares(const Problem& problem, Dims parts, Dims share);

// Returns the bytes that stay on a tile all the time: its bucket and its even share of the dense
// operands.
std::int64_t resident_bytes(const Case& c, const Cut& cut, const BucketSize& bucket);

// Returns the expected cycles of propagation: if anything spills, `steps` exchanges of `bytes` to
// every tile, each with a compute step in which most tiles only look for records, and one question.
// A spilled block almost always fits in a bucket one step away.
std::int64_t propagation_cycles(const Case& c, double spill_chance, std::int64_t steps,
                                std::int64_t bytes);

// Helpers that more than one pass uses.
// Cycles of the steps of control and of all waiting besides the steps; all steps are free in
// PopSparse's model, which callers test.
std::int64_t asking_cycles(const device::Machine& machine, const StepCounts& counts);
std::int64_t waiting_cycles(const device::Machine& machine, const StepCounts& counts);
// Cycles until a tile has begun to receive from `senders` others in one exchange.
std::int64_t receive_starts(const Case& c, std::int64_t senders);

// Returns true if the dense operands of a pass come from an even spread, or its result goes there.
// PopLibs prices neither.
bool operands_spread(const Case& c, Pass pass);
bool result_spread(const Case& c, Pass pass);

// Returns the cycles in which every tile arranges its run of a spread operand of all groups, with
// `rows` rows and `columns` columns.
std::int64_t arrange_cycles(const Case& c, std::int64_t rows, std::int64_t columns);

// A dense operand with these rows in all, of which a slice has `rows` rows and `columns` columns.
// Returns the number of tiles that send a part of the slice if the operand is spread over all
// tiles: those of each column's run.
std::int64_t spread_senders(const Case& c, std::int64_t all_rows, std::int64_t rows,
                            std::int64_t columns);

// Returns the cycles to answer one question and to broadcast the answer to all tiles, without its
// barrier and launch.
std::int64_t control_cycles(const device::Machine& machine);

// Returns the number of tiles that send to a tile that needs all `rows`, of which `tiles` tiles
// hold equal shares, rounded up: all others, or all that have a share if some have none.
std::int64_t other_sharers(std::int64_t tiles, std::int64_t rows);

// Returns the senders of a tile that needs a slice, for the slice with the most: the last slice has
// fewer rows than the others, which even shares may divide over more tiles.
std::int64_t most_senders(std::int64_t tiles, std::int64_t slice_rows, std::int64_t last_rows);

// Returns a lower bound of other_sharers() for at least so many tiles and rows. Shares that are
// rounded up leave less than half of the tiles without rows.
std::int64_t least_other_sharers(std::int64_t tiles, std::int64_t rows);
codelets::MatMulKernel kernel_of(const Case& c, Method method, BlockShape block);
std::int64_t zeroing_cycles(const Case& c, std::int64_t partials);

// The fetch of a dense operand before a pass: a tile needs `needed` of all `all` grains.
struct Fetch {
  std::int64_t needed = 0, all = 0, tiles = 0, grain_bytes = 0;
  bool at_home = false;  // the tile holds all that it needs
};

// The data that some tiles share: each holds a piece of them and takes those of all others.
struct Shared {
  std::int64_t bytes = 0;        // of all pieces
  std::int64_t piece_bytes = 0;  // of the largest piece
  std::int64_t tiles = 1;        // that share the data
  std::int64_t consecutive = 1;  // of these tiles, those in a row that take the same data
  bool holds_own = true;         // false: a tile takes even its own piece from another tile
                                 // (with no piece_bytes: from tiles on other buses)
};

// Returns the data of a dense slice of `rows` rows, of which each tile holds an even share of rows.
Shared shared_rows(std::int64_t bytes, std::int64_t rows, std::int64_t tiles,
                   std::int64_t consecutive);

// Returns the cycles in which a tile receives shared data. All tiles of an exchange bus receive
// together what they all take, except the pieces of the bus' own tiles; `all_tiles` matters to
// PopLibs alone, which also joins the tiles of an incomplete bus and takes all pieces to be far.
Cycles receive_cycles(const Case& c, const Shared& data, std::int64_t all_tiles);
Cycles receive_cycles(const device::Machine& machine, const Shared& data);

// Returns the bytes that a tile must fetch. Under even_operand_shares these are 0 if an even share
// of the operand is at least as large as the need, as in PopSparse.
std::int64_t fetched_bytes(const Case& c, const Fetch& fetch);

}  // namespace tessera::planner::internal
