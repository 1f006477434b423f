#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/planner/internal/candidate.hpp"
#include "tessera/planner/internal/pattern_map.hpp"
#include "tessera/planner/internal/room.hpp"

namespace tessera::planner::internal {

// The pattern's real size, ready to be asked once per partition.
struct PatternSize {
  std::int64_t blocks = 0;
  // [p] upper bound of the rows of all cells together when y is cut into p: sum of min(count, p).
  std::vector<std::int64_t> cell_rows;
  // [i] blocks in the rows (columns) before i.
  std::vector<std::int64_t> before_row, before_col;
  mutable PatternMap map;  // keeps answers: a pattern size serves one plan
};

// `stats` in its own blocks, counted in blocks of shape `used`; cell_rows for 0 .. most_y_parts.
PatternSize pattern_size(const PatternStats& stats, BlockShape used, std::int64_t most_y_parts);

// Everything that stays the same while one candidate's partitions are compared.
struct Case {
  Problem problem;  // with the block that is used
  device::Machine machine;
  Options options;
  Candidate candidate;
  Dims grains;              // of the whole layer, in candidate.grain
  std::int64_t blocks = 0;  // expected non-zero blocks of the layer
  Dims clump{1, 1, 1, 1};   // used blocks in one of the layer's own, x and y: they come together
  const PatternSize* pattern = nullptr;

  const PopLibsQuirks& quirks() const { return options.quirks; }
  // Groups have cells of their own, which a map of all rows and columns does not tell apart.
  bool has_map() const { return pattern != nullptr && grains.g == 1 && pattern->map.known(); }
  std::int64_t word_bytes() const { return machine.word_bits / 8; }
  std::int64_t input_bytes() const { return bytes_of(problem.data_type); }
  std::int64_t partials_bytes() const { return bytes_of(problem.partials_type); }
  bool types_differ() const { return problem.data_type != problem.partials_type; }
  // Dense blocks are counted, not expected: no slack.
  double oversize() const {
    return candidate.dense ? 0 : options.meta_info_bucket_oversize_proportion;
  }
};

Case make_case(const Problem& problem, const device::Machine& machine, const Options& options,
               const Candidate& candidate, const PatternSize* pattern);

// What a uniform random pattern puts into a rectangle of rows x cols blocks.
struct UniformCounts {
  std::int64_t rows = 0;     // rows with any non-zero
  std::int64_t per_row = 0;  // average non-zeros of these, rounded up
  std::int64_t total = 0;    // non-zeros
};
UniformCounts uniform_counts(std::int64_t rows, std::int64_t cols, double density);

// What the slowest tile finds in its cell, as the kernel walks it: the others wait for it.
struct TileLoad {
  double lines = 0, columns = 0;  // of the cell; lines are the rows, empty ones too
  double rows = 0;                // with any non-zero
  double nonzeros = 0;            // blocks
  double mean = 0;                // blocks of an average cell
  double cells = 1;

  double density() const { return nonzeros / (lines * columns); }
};

// Sizes of the one bucket each tile has, and the counts they come from.
struct BucketSize {
  UniformCounts cell;          // of the (x, y) cell, forward naming
  UniformCounts cell_swapped;  // of the (y, x) cell: what GradA sees
  std::int64_t blocks = 0;     // room for non-zero blocks
  std::int64_t values = 0;     // elements, padding included
  std::int64_t fwd_words = 0, grad_a_words = 0;
  TileLoad fullest;         // not for a lower bound, nor under the quirk average_tile
  double spill_chance = 0;  // a bound; 0 where `fullest` is not set
};

// One cut of the layer.
struct Cut {
  Dims parts;  // partition counts
  Dims share;  // grains of the largest share
};
inline Cut make_cut(const Case& c, Dims parts) { return {parts, ceil_div(c.grains, parts)}; }

// How blocks scatter over `cells` cells of that share.
Scatter scatter_of(const Case& c, Dims share, double density, std::int64_t cells);

// LowerBound: nothing in the result is more than for any cut with larger shares and fewer parts.
enum class SizeRule { Exact, LowerBound };
BucketSize bucket_size(const Case& c, const Cut& cut, SizeRule rule = SizeRule::Exact);

// A number that the buckets store, and its name.
struct StoredNumber {
  const char* name = "";
  std::int64_t value = 0;
};
// The largest of them. A record is never longer than its bucket, so a bucket that fits has only
// records that fit.
StoredNumber largest_stored(const Case& c, const Cut& cut, const BucketSize& bucket);
std::int64_t most_in_word(const Case& c);

// True when every word of the encoded buckets fits: see README, "Limits of the words".
bool words_fit(const Case& c, const Cut& cut, const BucketSize& bucket);

}  // namespace tessera::planner::internal
