#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/planner/internal/candidate.hpp"
#include "tessera/planner/internal/capacity.hpp"
#include "tessera/planner/internal/pattern_counts.hpp"
#include "tessera/planner/internal/pattern_map.hpp"

namespace tessera::planner::internal {

// The real counts of a pattern, prepared for one query per partition.
struct PatternSize {
  std::int64_t blocks = 0;

  CellRows cell_rows;

  // In the rows (columns) of all groups.
  RunningSums row_sums, col_sums;

  // Keeps its answers, so a PatternSize serves one plan.
  mutable PatternMap map;
};

// Converts statistics, which count the blocks of the layer, to counts of blocks of shape `used`.
PatternSize pattern_size(const PatternStats& stats, BlockShape used);

// All data that stay the same while the partitions of one candidate are compared.
struct Case {
  Problem problem;  // with the block of the tiles
  device::Machine machine;
  Options options;
  Candidate candidate;
  Dims grains;              // of the whole layer, in candidate.grain
  std::int64_t blocks = 0;  // expected non-zero blocks of the layer
  Dims clump{1, 1, 1, 1};   // tile blocks in a block of the layer, x and y; non-zero together
  const PatternSize* pattern = nullptr;

  // True: prices and bounds are those of PopLibs (docs/cost-model.md).
  bool parity() const { return options.poplibs_parity; }
  // Groups have cells of their own, which a map of all rows and columns does not tell apart.
  bool has_map() const { return pattern != nullptr && grains.g == 1 && pattern->map.known(); }
  std::int64_t word_bytes() const { return machine.word_bits / 8; }
  std::int64_t input_bytes() const { return bytes_of(problem.data_type); }
  std::int64_t partials_bytes() const { return bytes_of(problem.partials_type); }
  bool types_differ() const { return problem.data_type != problem.partials_type; }

  // Returns the extra capacity of buckets. Dense blocks need none, because their number is exact.
  double oversize() const {
    return candidate.dense ? 0 : options.meta_info_bucket_oversize_proportion;
  }
};

Case make_case(const Problem& problem, const device::Machine& machine, const Options& options,
               const Candidate& candidate, const PatternSize* pattern);

// The expected counts of a uniform random pattern in a rectangle of rows x cols blocks.
struct UniformCounts {
  std::int64_t rows = 0;     // rows with a non-zero
  std::int64_t per_row = 0;  // average non-zeros of such a row, rounded up
  std::int64_t total = 0;    // non-zeros
};
UniformCounts uniform_counts(std::int64_t rows, std::int64_t cols, double density);

// The load of the slowest tile, for which all others wait: the counts of its cell as the kernel
// walks it.
struct TileLoad {
  double lines = 0, columns = 0;  // sides of the cell; lines counts all rows, also empty ones
  double rows = 0;                // rows with a non-zero
  double nonzeros = 0;            // blocks
  double mean = 0;                // blocks of an average cell
  double cells = 1;               // number of cells among which this one is the fullest

  double density() const { return nonzeros / (lines * columns); }
};

// The size of the bucket that each tile has, and the counts it is computed from.
struct BucketSize {
  UniformCounts cell;          // of the (x, y) cell, in forward naming
  UniformCounts cell_swapped;  // of the (y, x) cell, which GradA works on
  std::int64_t blocks = 0;     // capacity in non-zero blocks
  std::int64_t values = 0;     // capacity in elements, padding included
  std::int64_t fwd_words = 0, grad_a_words = 0;
  TileLoad fullest;  // not for a lower bound, nor in parity
  // The distribution of the blocks of which `fullest` has the mean; empty if a map gives it.
  std::optional<Scatter> scatter;
  double spill_chance = 0;  // a bound; 0 where `fullest` is not set
};

// One partition of the layer.
struct Cut {
  Dims parts;  // partition counts
  Dims share;  // grains of the largest share
};
inline Cut make_cut(const Case& c, Dims parts) { return {parts, ceil_div(c.grains, parts)}; }

// Returns the distribution of random blocks over `cells` cells of a share, in each of the patterns
// that run at the same time.
Scatter scatter_of(const Case& c, Dims share, double density, std::int64_t cells);

// The rule for a bucket's size. With LowerBound, no number in the result exceeds that of any cut
// with larger shares and fewer parts.
enum class SizeRule { Exact, LowerBound };
BucketSize bucket_size(const Case& c, const Cut& cut, SizeRule rule = SizeRule::Exact);

// A number that is stored in a word of the buckets, and its name.
struct StoredNumber {
  const char* name = "";
  std::int64_t value = 0;
};

// Returns the largest stored number. A record is never longer than its bucket, so if the bucket
// fits, all its records fit.
StoredNumber largest_stored(const Case& c, const Cut& cut, const BucketSize& bucket);

// Returns the largest number that fits in a word of the buckets.
std::int64_t most_in_word(const Case& c);

// Returns true if every word of the encoded buckets fits; see "Limits of the words" in README.md.
bool words_fit(const Case& c, const Cut& cut, const BucketSize& bucket);

}  // namespace tessera::planner::internal
