#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::planner {

// The parts of a plan that the caller fixes (pins). The planner searches those that are empty.
struct PlanConstraints {
  std::optional<std::int64_t> x, y, z;          // counts of parts, 1 .. tiles
  std::optional<bool> grad_w_exchange_buckets;  // true: buckets travel in GradW, false: operands
  std::optional<bool> use_dense;  // true: all of R as dense blocks; false: sparse; open: cheaper

  friend bool operator==(const PlanConstraints&, const PlanConstraints&) = default;
};

// Switches for the behaviour of PopSparse (PopLibs 3.4) that differs from its documentation or its
// intention. Each switch restores one of these differences. All are off by default; with all on,
// plans equal PopSparse's in every number.
struct PopLibsQuirks {
  bool zero_cycles_per_partial = false;   // clearing sums costs 1 cycle each, not 1 per 64 bits
  bool reduction_memory_tests_z = false;  // partial sums count when z is split, not when y is
  bool divide_grad_w_overheads = false;   // GradW: fixed cycles divided by the number of rows
  bool grad_w_swapped_bytes = false;      // GradW: meta-info counted where partial sums are meant
  bool repeat_float_pair_loop = false;    // element: float z % 4 == 2 costs z/2 pairs, not one
  bool transpose_from_swapped_counts = false;  // Transpose: rows and columns of R not re-derived
  bool second_operands_if_fetched = false;  // GradW: no second buffer for operands that are at home
  bool five_words_per_grad_w_worker = false;  // element meta-info: 5 words per GradW worker, not 4
  bool align_meta_words_as_bytes = false;     // bucket meta-info rounded up to 4 words, not 4 bytes
  bool meta_not_divided_by_z = false;         // every bucket has capacity for the whole (x, y) cell
  bool no_end_marker_room = false;            // capacity does not count the end marker
  bool double_memory_bound = false;           // no plan: bound doubled up to the tile, then dropped
  bool room_ignores_scatter = false;          // bucket capacity from the average alone
  bool ignore_resident_memory = false;        // only temporary memory is bounded
  bool free_steps = false;                    // barriers, launches, new senders: free
  bool free_propagation = false;              // spills are assumed to cost nothing
  bool average_tile = false;        // work of the average tile, rows rounded up, not of the fullest
  bool receives_own_parts = false;  // a tile's own bucket and sums travel like the others'
  bool never_chooses_dense = false;  // useDense changes nothing but the flag in the plan
  bool even_operand_shares = false;  // operands are at home where an even share is large enough
  bool even_batch_parts = false;     // batch parts divide the batch; no padding to whole grains
  bool check_element_offsets_only = false;  // block word limits are found out while encoding

  friend bool operator==(const PopLibsQuirks&, const PopLibsQuirks&) = default;

  // Returns the quirks with all switches on.
  static PopLibsQuirks all();
};

// The options of a request. Their keys in text are PopSparse's names in camelCase.
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

  // GradA of element-wise layers. True: it reads the forward meta-information transposed. False: it
  // has separate meta-information, which is faster and takes more memory. Open: the cheaper of the
  // two. PopSparse's default is true, so with any quirk an open option means true. Block layers
  // always share.
  std::optional<bool> shared_buckets;

  // True: GradA may have a separate layout, with transpose(R) in other buckets, if that is cheaper
  // including the move of the values from one layout to the other. Has no effect with pinned
  // counts, a given shared_buckets or quirks, because these refer to a single layout.
  bool per_pass_plans = true;

  // GradW of block layers: may the planner choose the method that first brings both operands into
  // block order with a kernel? PopSparse copies the operands where the kernel is off; this machine
  // has no such copies, so that false leaves the other method.
  bool enable_structured_rearrangements = true;

  // Partitioner, for tests: everything is placed away from its home.
  bool partitioner_force_bucket_spills = false;

  // Search stops after so many examined partitions and boxes of partitions, and says so. 1 .. 2^62.
  std::int64_t search_limit = 20'000'000;

  PlanConstraints constraints;
  PopLibsQuirks quirks;

  friend bool operator==(const Options&, const Options&) = default;
};

// Parses options from JSON text; keys that it lacks keep their values in `base`. `where` names the
// text in messages.
// Keys: availableMemoryProportion, metaInfoBucketOversizeProportion, bucketConfidence,
// sharedBuckets, perPassPlans, enableStructuredRearrangements, partitioner.forceBucketSpills,
// searchLimit, planConstraints {partition {x, y, z}, exchange {gradWExchangeBuckets}, useDense},
// popLibsQuirks: true, false or an object of switches in camelCase.
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
