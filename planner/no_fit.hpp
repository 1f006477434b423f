#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// One combination of methods that the planner tries.
struct MethodChoice {
  Method fwd = Method::ElementFwd;
  std::optional<Method> grad_a, grad_w;  // empty: the pass is not planned
  bool grad_w_exchange_buckets = false;  // of no meaning without GradW
  BlockShape block;                      // the tiles' blocks
  Dims grain;                            // elements that are never cut
  bool use_dense = false;                // all blocks of R, whatever the pattern

  friend bool operator==(const MethodChoice&, const MethodChoice&) = default;
};

// "ElementFwd, ElementTranspose, ElementGradW with buckets travelling"
std::string to_string(const MethodChoice& choice);

// What a layer that has no plan breaks.
enum class LimitKind {
  Partition,        // no cut obeys the pins and the number of tiles
  Words,            // a number does not fit a word of the buckets
  TemporaryMemory,  // availableMemoryProportion of a tile
  TileMemory        // temporary and resident data together
};
std::string to_string(LimitKind kind);

// What one tile must hold in the most demanding step. All tiles have buckets of the same size, so
// the worst tile is every tile with a full share.
struct TileNeed {
  Bytes values;     // of the bucket, with their gradient when GradW is planned
  Bytes meta_info;  // of the bucket
  Bytes operands;   // even shares of the dense operands and of their gradients
  Bytes step;       // temporary buffers of the step below
  Pass pass = Pass::Fwd;
  std::string step_name;

  friend bool operator==(const TileNeed&, const TileNeed&) = default;
  Bytes total() const { return values + meta_info + operands + step; }
};

// The limit that rules out one combination of methods, at the partition that comes nearest: the one
// whose worst need is the smallest multiple of what there is; of these the one with fewest cycles.
struct Obstacle {
  MethodChoice methods;
  LimitKind limit = LimitKind::Partition;
  Dims partition;              // the nearest; of no meaning for LimitKind::Partition
  std::string what;            // the step or the word that breaks the limit
  std::int64_t needed = 0;     // bytes of a tile; for words: the number to be stored
  std::int64_t available = 0;  // the same unit
  TileNeed tile;               // at that partition

  friend bool operator==(const Obstacle&, const Obstacle&) = default;
};

// "g1 x2 y2 z1: Fwd, reduce sums takes 412000 temporary bytes a tile, 383385 are allowed"
std::string to_string(const Obstacle& obstacle);

// A change of the request that may give it a plan.
enum class RelaxationKind {
  MoreTiles,      // least number of tiles
  SmallerBatch,   // largest batch
  MoreMemory,     // least availableMemoryProportion
  OtherBlock,     // another square block of the kernels, at the same density
  BatchInParts,   // fewest parts of the batch, run one after the other
  NoPins,         // planConstraints left out
  MemoryAndParts  // availableMemoryProportion 1 and the batch in parts
};
std::string to_string(RelaxationKind kind);

// A change of the request after which there is a plan. Every field holds what is asked for then;
// the kind says which field differs from the request.
struct Relaxation {
  RelaxationKind kind = RelaxationKind::MoreTiles;
  std::int64_t tiles = 0;        // of the machine
  std::int64_t batch = 0;        // z of one run
  std::int64_t runs = 1;         // that the whole batch takes; the last one may be shorter
  double memory_proportion = 0;  // availableMemoryProportion
  BlockShape block;              // of R
  Cycles cycles;                 // of one run, as planned
  Cycles total_cycles;           // runs * cycles: the whole batch

  friend bool operator==(const Relaxation&, const Relaxation&) = default;
};

// "2048 tiles: 81234 cycles for the whole batch"
std::string to_string(const Relaxation& relaxation);

// Why nothing fits and what would help.
struct NoFit {
  std::string request;                  // the layer and the machine in words
  Obstacle tightest;                    // the nearest of `methods`
  std::vector<Obstacle> methods;        // every combination, in the order they are tried
  std::vector<Relaxation> relaxations;  // those that fit, at most one of a kind but OtherBlock
  std::vector<RelaxationKind> no_help;  // kinds of which no value was found that fits
  std::optional<std::size_t> cheapest;  // index into `relaxations`: fewest total_cycles
  std::int64_t plans_made = 0;          // searches that this took

  friend bool operator==(const NoFit&, const NoFit&) = default;
};

// Explains a request for which plan() finds nothing. Every relaxation changes one thing and was
// planned:
//   MoreTiles     doubled until there is a plan, then bisected: more tiles never hurt. Exact.
//   SmallerBatch  what fits depends on divisors: bisected over the multiples of every power of two,
//                 then the next 64 larger batches are tried one by one; batches are whole grains
//   MoreMemory    exact: the least temporary memory of any partition that the tile can hold, as a
//                 proportion rounded up to four decimals
//   OtherBlock    1, 4, 8 and 16 where they divide x and y and suit the types; all that fit;
//                 planned without `stats`, which count other blocks
//   BatchInParts  2, 3, .. 64 even parts are tried one by one, then doubled and bisected; the
//                 cheapest of the even size and the next 16 multiples of 16 with as many runs
//   NoPins        only when something is pinned
// The cheapest has the fewest total_cycles for the whole batch; of equal ones the first.
// Cost: one survey of all partitions and at most some hundred searches (`plans_made`), each of
// which gives up after 20,000 examined partitions and boxes and then counts as finding nothing.
// Tenths of a second for a chip of 1472 tiles. Error{InvalidArgument} for a request that cannot be,
// and for one that has a plan. Deterministic; allocates; thread-safe.
NoFit explain_no_fit(const Problem& problem, const device::Machine& machine,
                     const Options& options = {}, const PatternStats* stats = nullptr);

// The tightest need, every method's limit and every relaxation, a line each.
std::string to_text(const NoFit& no_fit);
// The same as JSON: an object with the fields above in camelCase.
std::string to_json(const NoFit& no_fit);
std::ostream& operator<<(std::ostream& out, const NoFit& no_fit);

// What was planned in place of the request.
struct BestEffort {
  PlanResult result;
  std::optional<Relaxation> relaxation;  // empty: the request itself has a plan, or nothing helps
  Problem problem;                       // the request with the relaxation applied
  Options options;
};

// The plan of the request; or, when nothing fits, the plan under the cheapest relaxation that the
// planner can apply by itself: more of the tile's memory for temporary data, or the batch in parts;
// only when neither helps alone, both. Then the status is BestEffort and `reason` names the change
// in one line; a layer in parts is run `relaxation->runs` times. A plan that is found like this
// never exceeds the tile (unless PopLibsQuirks::ignore_resident_memory asks not to look). When
// nothing helps, `result` is what plan() returned. Cost and errors as plan() when that finds a
// plan, else as explain_no_fit.
BestEffort plan_best_effort(const Problem& problem, const device::Machine& machine,
                            const Options& options = {}, const PatternStats* stats = nullptr);

}  // namespace tessera::planner
