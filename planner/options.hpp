#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/base/placement.hpp"

namespace tessera::planner {

// The parts of a plan that the caller fixes (pins). The planner searches those that are empty.
struct PlanConstraints {
  std::optional<std::int64_t> x, y, z;          // counts of parts, 1 .. tiles
  std::optional<bool> grad_w_exchange_buckets;  // true: buckets travel in GradW, false: operands

  // False: R is sparse. True: all of R is multiplied, without buckets (Plan::dense); in large
  // blocks if another pin, Options::poplibs_parity or another placement than an even spread asks
  // for buckets, or if R without buckets costs more cycles or does not fit. Open: R is sparse, in
  // large blocks or without buckets, whichever costs fewer cycles; without buckets in all passes or
  // in none, and not if buckets are asked for as above or by
  // Options::partitioner_force_bucket_spills. With poplibs_parity, R is sparse.
  std::optional<bool> use_dense;

  friend bool operator==(const PlanConstraints&, const PlanConstraints&) = default;
};

// Everything a caller can turn. Text keys are PopSparse's names in camelCase.
struct Options {
  // The share of a tile's memory that temporary data may take, in (0, 1]. PopSparse's tools use 1.
  // Raise it if there is no plan; lower it to leave memory to other layers.
  double available_memory_proportion = 0.6;

  // The extra capacity of each bucket for values and meta-information, as a proportion from 0 to
  // 1000. Raise it for patterns that are far from uniform: there are fewer spills, but buckets take
  // more memory and more bytes move.
  double meta_info_bucket_oversize_proportion = 0.3;

  // The chance, in [0, 1), that a random pattern as the planner expects it needs no spill. Buckets
  // get at least the capacity for that. With 0, the proportion above alone decides, as in
  // PopSparse; an option text that sets the proportion but not the confidence means 0. A spilled
  // block costs every tile a barrier and a visit; capacity costs a few bytes to move.
  double bucket_confidence = 0.999;

  // The number of random patterns, 1 to 2^31 - 1, of which each has tiles like these and all run at
  // the same time, as the parts of R do on the devices of a pod. Costs are those of the slowest of
  // all tiles, and buckets have the capacity for the fullest of all cells. Has no effect on a plan
  // that knows its pattern, nor with poplibs_parity.
  std::int64_t pattern_count = 1;

  // GradA of element-wise layers. True: it reads the forward meta-information transposed. False: it
  // has separate meta-information, which is faster and takes more memory. Open: the cheaper of the
  // two, or, with poplibs_parity, PopSparse's default, which is true. Block layers always share.
  std::optional<bool> shared_buckets;

  // True: GradA may have a separate layout, with transpose(R) in other buckets, if that is cheaper
  // including the move of the values from one layout to the other. Has no effect with pinned
  // counts, a given shared_buckets or poplibs_parity, because these refer to a single layout.
  bool per_pass_plans = true;

  // GradW of block layers. True: the planner may choose the method that first brings both operands
  // into block order with a kernel. False: it may not, and the other method remains. (PopSparse
  // then copies the operands instead; the modelled machine has no such copies.)
  bool enable_structured_rearrangements = true;

  // The tiles that hold the dense operands before a pass and its result after it. EvenSpread is for
  // a single layer, whose caller stores tensors independently of the plan; the model is validated
  // with it. AtHome is for a layer whose neighbours use the same slices.
  Placement operand_placement = Placement::EvenSpread;

  // For tests of the partitioner: every block is placed in another bucket than its home.
  bool partitioner_force_bucket_spills = false;

  // The number of partitions and boxes of partitions after which the search of a layout, of all
  // methods together, stops with a status that says so, 1 .. 2^62.
  std::int64_t search_limit = 20'000'000;

  PlanConstraints constraints;

  // Plans as PopLibs 3.4 makes them, equal in every number: with its cost model, which does some
  // things otherwise than it says or means to and leaves barriers, spills and skew unpriced.
  // docs/cost-model.md lists the differences. For comparisons; such a plan is never cheaper here.
  bool poplibs_parity = false;

  friend bool operator==(const Options&, const Options&) = default;
};

// Returns the default options with useDense false, for callers that need buckets.
Options sparse_options();

// Parses options from JSON text; keys that it lacks keep their values in `base`. `where` names the
// text in messages.
// Keys: availableMemoryProportion, metaInfoBucketOversizeProportion, bucketConfidence,
// patternCount, sharedBuckets, perPassPlans, enableStructuredRearrangements, operandPlacement
// ("even-spread", "as-left", "at-home"), partitioner.forceBucketSpills, searchLimit,
// planConstraints {partition {x, y, z}, exchange {gradWExchangeBuckets}, useDense}, popLibsParity.
// doGradAPass, doGradWPass and partialsType belong to the problem and are refused here by name.
// partitioner.optimiseForSpeed must be true and partitioner.useActualWorkerSplitCosts false: that
// is what the partitioner does, and PopSparse's default. Numbers and switches may also be strings
// holding them, as PopSparse's own options are. Error{InvalidArgument} names an unknown key, a
// wrong type, or a value and its legal range.
Options parse_options(std::string_view json, std::string_view where, const Options& base = {});

// Parses a planConstraints object alone, as the tools take it. Throws Error{InvalidArgument} as
// parse_options().
PlanConstraints parse_plan_constraints(std::string_view json, std::string_view where);

// Throws Error{InvalidArgument} naming the option, its value and the legal range.
void check_options(const Options& options);

}  // namespace tessera::planner
