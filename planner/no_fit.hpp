#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// A combination of methods that the planner tries.
struct MethodChoice {
  Method fwd = Method::ElementFwd;
  std::optional<Method> grad_a, grad_w;  // empty if the pass is not planned
  bool grad_w_exchange_buckets = false;  // without meaning if GradW is not planned
  BlockShape block;                      // of the tiles
  Dims grain;                            // elements that are never cut
  bool use_dense = false;                // all blocks of R are kept, whatever the pattern
  bool without_buckets = false;  // R is dense and in no buckets (Plan::dense); no methods then

  friend bool operator==(const MethodChoice&, const MethodChoice&) = default;
};

// Returns for example "ElementFwd, ElementTranspose, ElementGradW with buckets travelling".
std::string to_string(const MethodChoice& choice);

// The kind of limit that a layer without a plan breaks.
enum class LimitKind {
  Partition,        // no partition obeys the pins and the number of tiles
  Words,            // a number does not fit in a word of the buckets
  TemporaryMemory,  // temporary data exceed availableMemoryProportion of a tile
  TileMemory        // temporary and resident data together exceed a tile
};

// The memory that one tile needs in the most demanding step. All tiles have buckets of the same
// size, so this is the need of every tile with a full share.
struct TileNeed {
  Bytes values;     // of the bucket, with their gradient if GradW is planned
  Bytes meta_info;  // of the bucket
  Bytes operands;   // even shares of the dense operands and of their gradients
  Bytes step;       // temporary buffers of the step named below
  Pass pass = Pass::Fwd;
  Term step_term = Term::Multiply;

  friend bool operator==(const TileNeed&, const TileNeed&) = default;
  Bytes total() const { return values + meta_info + operands + step; }
};

// The limit that rules out one combination of methods. It is the limit that breaks at the nearest
// partition, the one whose worst need is the smallest multiple of what is available; of these, the
// one with the fewest cycles.
struct Obstacle {
  MethodChoice methods;
  LimitKind limit = LimitKind::Partition;
  Dims partition;              // the nearest; without meaning for LimitKind::Partition
  std::string what;            // the step or the stored number that breaks the limit
  std::int64_t needed = 0;     // bytes of a tile; for Words, the number to be stored
  std::int64_t available = 0;  // in the same unit
  TileNeed tile;               // at that partition

  friend bool operator==(const Obstacle&, const Obstacle&) = default;
};

// Returns for example
// "g1 x2 y2 z1: Fwd, reduce sums takes 412000 temporary bytes a tile, 383385 are allowed".
std::string to_string(const Obstacle& obstacle);

// The kinds of change to a request that may give it a plan.
enum class RelaxationKind {
  MoreTiles,      // the least number of tiles, of those that the chip has
  SmallerBatch,   // the largest batch
  MoreMemory,     // the least availableMemoryProportion
  OtherBlock,     // another square block of the kernels, at the same density
  LowerDensity,   // the largest density, of a random pattern
  BatchInParts,   // the fewest parts of the batch, run one after the other
  RunDense,       // R dense: PlanConstraints::use_dense true and no other pins
  NoPins,         // no planConstraints
  MemoryAndParts  // availableMemoryProportion 1 and the batch in parts
};
std::string to_string(RelaxationKind kind);

// A change of the request after which it has a plan. The fields describe the changed request; the
// kind tells which of them differ from the original.
struct Relaxation {
  RelaxationKind kind = RelaxationKind::MoreTiles;
  std::int64_t tiles = 0;        // of the machine
  std::int64_t batch = 0;        // z of one run
  std::int64_t runs = 1;         // for the whole batch; the last run may be shorter
  double memory_proportion = 0;  // availableMemoryProportion
  BlockShape block;              // of R
  double density = 0;            // of R
  Cycles cycles;                 // of one run, as planned
  Cycles total_cycles;           // runs * cycles, for the whole batch

  friend bool operator==(const Relaxation&, const Relaxation&) = default;
};

// Returns for example "2048 tiles: 81234 cycles for the whole batch".
std::string to_string(const Relaxation& relaxation);

// The reasons why a request has no plan, and the changes that would give it one.
struct NoFit {
  std::string request;                  // the layer and the machine in words
  Obstacle tightest;                    // the nearest entry of `methods`
  std::vector<Obstacle> methods;        // every combination, in the order in which they are tried
  std::vector<Relaxation> relaxations;  // that fit; at most one of a kind, except OtherBlock
  std::vector<RelaxationKind> no_help;  // the kinds without any value that fits
  std::optional<std::size_t> cheapest;  // index into `relaxations` of the fewest total_cycles;
                                        // a lower density is less work and does not count
  std::int64_t plans_made = 0;          // number of searches

  friend bool operator==(const NoFit&, const NoFit&) = default;
};

// Explains a request for which plan() finds nothing. Every relaxation that it returns changes one
// thing and has been planned:
//   MoreTiles     Tried unless the machine has all tiles of the preset of its name. Steps double
//                 until there is a plan; then the count is bisected. The result is exact, because
//                 more tiles never hurt.
//   SmallerBatch  The batches that fit depend on divisors. The multiples of every power of two are
//                 bisected; then the next 64 larger batches are tried one by one. Batches are whole
//                 grains.
//   MoreMemory    Exact: the least temporary memory of any partition that the tile can hold, as a
//                 proportion rounded up to four decimals.
//   OtherBlock    Squares of side 1, 4, 8 and 16 that divide x and y and suit the types; all that
//                 fit are returned. They are planned without `stats`, which count other blocks.
//   LowerDensity  The thousandths of the density are bisected, each rounded down to four digits.
//                 The layer is planned without `stats`, which count this pattern.
//   BatchInParts  2, 3, ... 64 even parts are tried one by one; then steps double and the count is
//                 bisected. A part is a whole number of grains.
//   RunDense      Tried only if the options rule out a dense plan that they could allow.
//   NoPins        Tried only if the options pin something besides useDense.
// If useDense is open, a change is named if R then fits in buckets. The cheapest relaxation has the
// fewest total_cycles; of equal ones, it is the first.
//
// Cost: one survey of all partitions and at most some hundred searches (`plans_made`). A trial
// search gives up after 20,000 examined partitions and boxes and then counts as finding nothing;
// the value that is found is planned under the request's search limit. This takes tenths of a
// second for a chip of 1472 tiles.
//
// Throws Error{InvalidArgument} if the request is invalid or has a plan. The result is
// deterministic. Allocates. Any number of threads may call it.
NoFit explain_no_fit(const Problem& problem, const device::Machine& machine,
                     const Options& options = {}, const PatternStats* stats = nullptr);

// Returns the tightest need, the limit of every method and every relaxation, one line each.
std::string to_text(const NoFit& no_fit);

// The plan of a request or of its cheapest relaxation.
struct BestEffort {
  PlanResult result;
  std::optional<Relaxation> relaxation;  // empty if the request has a plan or nothing helps
  Problem problem;                       // of the request, with the relaxation applied
  Options options;                       // of the request, with the relaxation applied
};

// The plan of the request; or, when nothing fits, the plan under the cheapest relaxation that the
// planner can apply by itself: more of the tile's memory for temporary data, or the batch in parts;
// only when neither helps alone, both. Then the status is BestEffort and `reason` names the change
// in one line; a layer in parts is run `relaxation->runs` times. A plan that is found like this
// never exceeds the tile (unless Options::poplibs_parity is set, which does not look). When
// nothing helps, `result` is what plan() returned. Cost and errors as plan() when that finds a
// plan, else as explain_no_fit.
BestEffort plan_best_effort(const Problem& problem, const device::Machine& machine,
                            const Options& options = {}, const PatternStats* stats = nullptr);

}  // namespace tessera::planner
