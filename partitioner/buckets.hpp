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
#include "tessera/sparse/formats.hpp"

namespace tessera::partitioner {

// How far non-zeros must travel. A piece held at cell h gets home to cell c after (c - h) mod
// splits steps along x and y. y_end[dx] is 1 + the largest y distance of any piece at x distance
// dx, and 0 when nothing lies at that x distance; its size is 1 + the largest x distance. Nothing
// spilled: {1}. Nothing at all: {1} too, so the home visit always stands.
struct Travel {
  std::vector<std::int32_t> y_end{1};

  friend bool operator==(const Travel&, const Travel&) = default;
  std::int64_t x_end() const { return static_cast<std::int64_t>(y_end.size()); }
  std::int64_t largest_y_end() const;
  // Displacements visited beyond home; each costs splits.z shifts and compute steps.
  std::int64_t steps() const;
  bool stays_home() const { return y_end.size() == 1 && y_end[0] <= 1; }
};

// The travel bounds as the words that are sent to the machine: x_end, largest y_end, z_parts, then
// y_end of every x distance. Example: {{2, 0, 1}} and 4 gives 3 2 4 2 0 1.
std::vector<std::uint32_t> travel_words(const Travel& travel, std::int64_t z_parts);

// What became of what did not fit at home. A step is a displacement that is visited beyond home;
// travel is the sum over moved blocks of the partitions they are away from home, along x and y.
struct SpillStats {
  std::int64_t blocks = 0;          // non-zero blocks in all
  std::int64_t moved_blocks = 0;    // of these, outside their own cell
  std::int64_t records = 0;         // over all buckets
  std::int64_t fullest_words = 0;   // of any forward bucket, end marker included
  std::int64_t fullest_blocks = 0;  // of any bucket
  std::int64_t fullest_grad_a_words = 0;
  std::int64_t steps = 0;
  std::int64_t greedy_steps = 0;       // what Spilling::Greedy needs for the same pattern
  std::int64_t lower_bound_steps = 0;  // fewer are impossible; 0 where nothing was searched
  std::int64_t travel = 0;
  std::int64_t cut_rows = 0;  // entries of rows beyond one for each row of a cell
  // Estimated cycles of the visits of a pass, and what they would be without evening the load; 0
  // when EncodeOptions::even_load was not given.
  Cycles load, uneven_load;

  // Are the steps known to be the fewest there can be?
  bool exact() const { return steps == lower_bound_steps; }
  double moved_share() const;  // of all blocks, 0 .. 1
};

// A sparse matrix as the machine holds it. Words are kept at the width of the machine. Immutable
// once made; safe to read from many threads.
//   meta          [buckets][meta_words]     forward buckets
//   grad_a_meta   [buckets][grad_a_words]   separate GradA buckets, else empty
//   source        [buckets][blocks]         the block of the encoded matrix in each value slot, -1
//                                           for padding: the map for values and gradients
struct Buckets {
  TileGrid grid;
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> meta;
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> grad_a_meta;
  std::vector<std::int32_t> source;
  Travel travel;
  SpillStats stats;

  // First word of a bucket, which must be below grid.buckets().
  const void* meta_words(std::int64_t bucket) const;
  const void* grad_a_meta_words(std::int64_t bucket) const;
  std::int64_t values_per_bucket() const { return grid.blocks * grid.block.area(); }
};

// What did not fit, in the terms of the remedy. Values are elements. Words are those of forward
// buckets unless they are called GradA words, which are 0 without separate GradA buckets.
struct Misfit {
  std::int64_t x = 0, y = 0, z = 0;  // the first bucket that could not be emptied: its cell, its z
  std::int64_t tile = 0;             // and its number
  std::int64_t tile_words_needed = 0,
               tile_words = 0;  // its piece whole; its capacity; end marker included
  std::int64_t tile_values_needed = 0, tile_values = 0;  // its piece whole; its capacity
  std::int64_t tile_grad_a_words_needed = 0, tile_grad_a_words = 0;  // likewise
  std::int64_t left_blocks = 0;                     // blocks without a place, of all buckets
  std::int64_t words_needed = 0, words_free = 0;    // for what is left, and over the whole machine
  std::int64_t values_needed = 0, values_free = 0;  // likewise; free values without words are lost
  std::int64_t grad_a_words_needed = 0, grad_a_words_free = 0;  // as words
  std::int64_t blocks_needed = 0, blocks_free = 0;  // capacity wanted in all, and there in all
  // Fewer tiles with buckets of this size cannot hold it, by the sums alone; in the message when
  // there are fewer. 0: no number of tiles can, as a bucket has no room for a single block.
  std::int64_t least_tiles = 0;
  // The least factor, in hundredths, for which it fits with_capacity(grid, factor); by trying.
  double capacity_factor = 1.0;
  std::string message;  // says all this in one sentence
};

// Either buckets or a misfit, never both and never a part.
struct EncodeResult {
  std::optional<Buckets> buckets;
  std::optional<Misfit> misfit;
};

// Where what does not fit at home goes. Whether a pattern fits does not depend on it.
enum class Spilling {
  FewestSteps,  // the fewest steps, then the least travel, then the fewest cut rows; never worse
                // than Greedy. Proven where SpillStats::exact() says so
  Greedy        // PopLibs' order with its defects mended: the nearest bucket with room
};

// What a compute step and a step of propagation cost, to even the load with.
struct LoadCost {
  codelets::MatMulKernel kernel;  // of the pass that is to be fast
  Cycles shift;                   // all buckets move by one partition: exchange and sync
};

// How pieces that do not fit at home are placed.
struct EncodeOptions {
  bool force_spills = false;  // test mode: every piece moves to another bucket (needs two buckets)
  Spilling spilling = Spilling::FewestSteps;  // no effect when spills are forced
  // Trades steps against the slowest tile of each visit: takes more steps, or moves other blocks,
  // where that is estimated to cost fewer cycles in all. Off: the fewest steps. Blocks are computed
  // by the tiles of their own cell wherever they lie, so where nothing spills nothing is moved.
  // No effect when spills are forced.
  std::optional<LoadCost> even_load = std::nullopt;
};

// Encodes a pattern; does not read values. T is float or double.
// Every block lies at home if that leaves no other without a place or with a longer way; the rest
// is spilled as the options say. Whether a pattern fits never turns from yes to no when capacities
// grow (force_spills apart). Room that no record header fits in is lost, so a few hundredths of
// slack may be needed beyond what the totals ask for; PopLibs' search fits some such cases, and
// fails in others that fit here.
// Throws Error{InvalidArgument} for a bad grid or a matrix of another size or block,
// Error{BadInput} for one that is not canonical (sparse::check), Error{LimitExceeded} naming cell,
// field, value and limit when a word does not fit its width, whatever the capacity.
// Cost O(blocks log(blocks of a cell)). Spilling adds flows over cells * displacements, limited as
// the README says, and O(buckets^2) when it is much; a misfit costs some ten attempts more.
// Deterministic. Any number of threads may encode at once.
template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options = {});

// The same on the threads of `executor`, into buckets whose storage is used again: for patterns
// that change. The result is the same bits for any number of threads and whatever stood there.
// Nothing comes back when it fits. After a misfit the buckets are as before; after an exception
// they may only be encoded into again. The executor must have no other loop running.
template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::Csr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options = {});

// Values (elements of each block, row-major) in bucket order [buckets][values_per_bucket], 0 where
// there is padding. `values` has the length of the encoded matrix' values, else
// Error{InvalidArgument}. To and From are float, double or Half, or one is BFloat16 and the other
// float. O(blocks * area), thread-safe.
template <class To, class From>
std::vector<To> to_bucket_order(const Buckets& buckets, std::span<const From> values);

// The same into storage that is there, on the threads of `executor`: for values that change while
// the pattern stays, and for whatever else a layer keeps for each non-zero (momenta). Every slot is
// written, 0 into padding. `bucket_values` has the length of to_bucket_order's result.
template <class To, class From>
void refill(const Buckets& buckets, std::span<const From> values, std::span<To> bucket_values,
            Executor& executor);

// The inverse: values of the matrix from values in bucket order.
template <class To, class From>
std::vector<To> from_bucket_order(const Buckets& buckets, std::span<const From> bucket_values);

// The matrix, from the words alone (not from `source`): the exact inverse of encode. Throws
// Error{BadInput} naming bucket and word when the words are not what encode writes for the rows
// they hold, Error{InvalidArgument} for lists of the wrong length. Rows of a record may stand in
// any order. T is float or double. O(blocks log(blocks of a row)), thread-safe.
template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values);
// On the threads of `executor`; the same matrix for any number of them.
template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values, Executor& executor);

}  // namespace tessera::partitioner
