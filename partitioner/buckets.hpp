#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::partitioner {

// Travel holds the bounds of how far non-zeros must travel. A piece that cell h holds for cell c
// gets home after (c - h) mod splits steps along x and along y.
struct Travel {
  // y_end[dx] is 1 + the largest y distance of any piece at x distance dx, and 0 if there is no
  // piece at that x distance. The size is 1 + the largest x distance. {1} if nothing is spilled,
  // and also for a matrix without blocks, so the home visit is always included.
  std::vector<std::int32_t> y_end{1};

  friend bool operator==(const Travel&, const Travel&) = default;
  std::int64_t x_end() const { return static_cast<std::int64_t>(y_end.size()); }
  std::int64_t largest_y_end() const;

  // Number of displacements that are visited beyond home. Each costs splits.z shifts and compute
  // steps.
  std::int64_t steps() const;

  // True if nothing leaves its own cell.
  bool stays_home() const { return y_end.size() == 1 && y_end[0] <= 1; }
};

// Returns the travel bounds as the words that are sent to the machine: x_end, largest y_end,
// z_parts, then y_end of every x distance. Example: {{2, 0, 1}} and 4 give 3 2 4 2 0 1.
std::vector<std::uint32_t> travel_words(const Travel& travel, std::int64_t z_parts);

// SpillStats counts what encoding did with blocks that did not fit at home. A step is a
// displacement that is visited beyond home.
struct SpillStats {
  std::int64_t blocks = 0;                // all non-zero blocks
  std::int64_t moved_blocks = 0;          // of these, the blocks outside their own cell
  std::int64_t records = 0;               // over all buckets
  std::int64_t fullest_words = 0;         // of any forward bucket, end marker included
  std::int64_t fullest_blocks = 0;        // of any bucket
  std::int64_t fullest_grad_a_words = 0;  // of any separate GradA bucket, end marker included

  std::int64_t steps = 0;

  // Steps that Spilling::Greedy needs for the same pattern; 0 if nothing was searched.
  std::int64_t greedy_steps = 0;

  // No placement has fewer steps than this; 0 if nothing was searched.
  std::int64_t lower_bound_steps = 0;

  // Sum over the moved blocks of the partitions they are away from home, along x and y.
  std::int64_t travel = 0;

  // Row entries of all records beyond one for each row of a cell.
  std::int64_t cut_rows = 0;

  // Estimated cycles of the visits of one pass: for this placement, and for the placement before
  // the load was evened. Both are 0 without EncodeOptions::even_load.
  Cycles load, uneven_load;

  // True if the steps are known to be the fewest possible.
  bool exact() const { return steps == lower_bound_steps; }

  // Moved blocks divided by all blocks, 0 .. 1.
  double moved_share() const;
};

// Buckets hold a sparse matrix as the machine stores it. Words have the width of the machine.
// Buckets do not change once they are made, except by encode_into() and update(), and may be read
// by many threads.
struct Buckets {
  TileGrid grid;

  // [buckets][meta_words] The words of the forward buckets.
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> meta;

  // [buckets][grad_a_words] The words of the separate GradA buckets, empty without them.
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> grad_a_meta;

  // [buckets][blocks] The source map for values and gradients: for each value slot the number of
  // its block in the encoded matrix, or -1 for padding.
  std::vector<std::int32_t> source;

  Travel travel;
  SpillStats stats;

  // The first word of a bucket, which must be below grid.buckets().
  const void* meta_words(std::int64_t bucket) const;
  const void* grad_a_meta_words(std::int64_t bucket) const;

  std::int64_t values_per_bucket() const { return grid.blocks * grid.block.area(); }
};

// A Misfit says what did not fit, in terms of the remedy. Values are counted in elements. Words are
// those of forward buckets unless they are called GradA words, which are 0 without separate GradA
// buckets.
struct Misfit {
  // Cell and z of the first bucket whose piece could not be placed, and the number of that bucket.
  std::int64_t x = 0, y = 0, z = 0;
  std::int64_t tile = 0;

  // The need of the whole piece of that bucket, and the capacity of the bucket. Words include the
  // end marker.
  std::int64_t tile_words_needed = 0, tile_words = 0;
  std::int64_t tile_values_needed = 0, tile_values = 0;
  std::int64_t tile_grad_a_words_needed = 0, tile_grad_a_words = 0;

  // Blocks of all buckets that have no place.
  std::int64_t left_blocks = 0;

  // The need of these blocks, and the free space of the whole machine. Free values in buckets
  // without free words cannot be used.
  std::int64_t words_needed = 0, words_free = 0;
  std::int64_t values_needed = 0, values_free = 0;
  std::int64_t grad_a_words_needed = 0, grad_a_words_free = 0;

  // Blocks of the whole matrix, and the capacity of all buckets together.
  std::int64_t blocks_needed = 0, blocks_free = 0;

  // Fewer tiles with buckets of this size cannot hold the matrix, by the sums alone. The message
  // mentions it if the grid has fewer. 0: no number of tiles can, because a bucket has no capacity
  // for a single block.
  std::int64_t least_tiles = 0;

  // The smallest factor, in hundredths, for which the matrix fits with_capacity(grid, factor);
  // found by trying.
  double capacity_factor = 1.0;

  // All of this in one sentence.
  std::string message;
};

// The result of encode(): either buckets or a misfit, never both and never a part of either.
struct EncodeResult {
  std::optional<Buckets> buckets;
  std::optional<Misfit> misfit;
};

// The method that chooses buckets for blocks that do not fit at home. Whether a pattern fits does
// not depend on it.
enum class Spilling {
  // The fewest steps, then the least travel, then the fewest cut rows. Never worse than Greedy.
  // Proven to be the fewest steps if SpillStats::exact() is true.
  FewestSteps,

  // PopLibs' order with its defects corrected: the nearest bucket with free capacity.
  Greedy
};

// The cost of a compute step and of a propagation step, by which the load is evened.
struct LoadCost {
  // The kernel of the pass that is to be fast.
  codelets::MatMulKernel kernel;

  // Cycles of moving all buckets by one partition: exchange and sync.
  Cycles shift;
};

// EncodeOptions says how pieces that do not fit at home are placed.
struct EncodeOptions {
  // Test mode: every piece moves to another bucket. Needs at least two buckets.
  bool force_spills = false;

  // Has no effect if spills are forced.
  Spilling spilling = Spilling::FewestSteps;

  // If given, steps are traded against the slowest tile of each visit: more steps are taken, or
  // other blocks moved, if that is estimated to cost fewer cycles in all. Without it the fewest
  // steps are taken. The tiles of a block's own cell compute it wherever it is stored, so nothing
  // is moved if nothing spills. Has no effect if spills are forced.
  std::optional<LoadCost> even_load = std::nullopt;
};

// Encodes the pattern of `matrix` into buckets; values are not read. T is float or double.
//
// A block stays at home unless moving it gives another block a place or a shorter path home. Blocks
// that do not fit are spilled as the options say. A pattern that fits also fits larger capacities
// (except with force_spills). Free words that are too few for a record header are lost, so a
// pattern may need a few hundredths more capacity than the totals ask for; PopLibs' search fits
// some such cases, and fails in others that fit here.
//
// Throws Error{InvalidArgument} for an impossible grid or a matrix of another size or block;
// Error{BadInput} for a matrix that is not canonical (sparse::check); Error{LimitExceeded}, which
// names cell, field, value and limit, if a number does not fit its word, whatever the capacity.
//
// Cost: O(blocks log(blocks of a cell)). Spilling adds flows over cells * displacements, with the
// limits that the README gives, and O(buckets^2) if much is spilled; a misfit costs about ten more
// attempts. Deterministic. Several threads may call it at once.
template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options = {});
// The same without the check of the matrix.
template <class T>
EncodeResult encode(const sparse::CheckedCsr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options = {});

// Encodes like encode(), on the threads of `executor`, into buckets whose storage is used again:
// for patterns that change. The result has the same bits for any number of threads and any earlier
// content. Returns nothing if the pattern fits. After a misfit the buckets are as before; after an
// exception they may only be encoded into again. The executor must have no other loop running.
template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::Csr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options = {});
template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::CheckedCsr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options = {});

// Returns the values in bucket order [buckets][values_per_bucket], with 0 in padding; the elements
// of a block are row-major. Throws Error{InvalidArgument} unless `values` has the length of the
// encoded matrix' values. To and From are float, double or Half, or one is BFloat16 and the other
// float. O(blocks * area). Thread-safe.
template <class To, class From>
std::vector<To> to_bucket_order(const Buckets& buckets, std::span<const From> values);

// Writes the result of to_bucket_order() into existing storage, on the threads of `executor`: for
// values that change while the pattern stays, and for other arrays that a layer keeps per non-zero
// (momenta). Every slot is written, with 0 in padding. `bucket_values` has the length of
// to_bucket_order()'s result.
template <class To, class From>
void refill(const Buckets& buckets, std::span<const From> values, std::span<To> bucket_values,
            Executor& executor);

// Writes the values of the matrix from values in bucket order: the inverse of to_bucket_order().
template <class To, class From>
void from_bucket_order(const Buckets& buckets, std::span<const From> bucket_values,
                       std::span<To> values);

// Returns the matrix, from the words alone (`source` is not read): the exact inverse of encode().
// The rows of a record may come in any order. T is float or double. Throws Error{BadInput}, which
// names bucket and word, if the words are not those that encode() writes for the rows they hold;
// Error{InvalidArgument} for lists of the wrong length. O(blocks log(blocks of a row)).
// Thread-safe.
template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values);

// Decodes on the threads of `executor`. The matrix is the same for any number of them.
template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values, Executor& executor);

}  // namespace tessera::partitioner
