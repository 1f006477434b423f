#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::partitioner {

// The buckets of one matrix without what follows from their words: the source map and the travel
// bounds.
struct SavedBuckets {
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> meta, grad_a_meta;
  SpillStats stats;
};

// One layout of a layer's weights: a grid, and the buckets of each group.
struct SavedLayout {
  TileGrid grid;
  std::vector<SavedBuckets> groups;
};

// The weights of a layer as a machine keeps them, for a file: a host encodes a pattern once, and
// machines take the buckets later without encoding it again.
struct SavedWeights {
  // The text says what they were encoded for, to the caller; it may be a plan.
  std::string plan;

  // Each group has the pattern of its weights as they were given, without values.
  std::vector<sparse::Csr<float>> patterns;

  // Each group has its values in the order of the first layout's buckets,
  // [buckets][values_per_bucket] in the grid's type, little-endian.
  std::vector<std::vector<std::byte>> values;

  // The layout of R, and behind it that of transpose(R) if GradA has one of its own.
  std::vector<SavedLayout> layouts;
};

// Returns the part of buckets that is saved.
SavedBuckets saved(const Buckets& buckets);

// Returns the buckets again: restored(b.grid, saved(b), matrix, ..) has the fields of b, where b
// are buckets of the pattern of `matrix`. Throws Error{BadInput} if the words are not those that
// encode() writes for the grid, naming bucket and word, if they hold another pattern than the
// matrix, and if the statistics contradict them. O(blocks log(blocks of a row)).
Buckets restored(const TileGrid& grid, const SavedBuckets& saved, const sparse::Csr<float>& matrix,
                 Executor& executor);

// Returns the bytes of a file with these weights; docs/bucket-format.md describes them. Equal
// weights give equal bytes. Throws Error{InvalidArgument} unless every list has the length that its
// grid asks for.
std::string write_saved_weights(const SavedWeights& weights);

// Reads such a file. Throws Error{BadInput} "<name>: reason" for a file that is no file of weights,
// of another version, too short, too long, or damaged in any bit, which a checksum finds; and for
// one whose fields contradict each other. Words and patterns are not looked at: restored() and
// sparse::check do that. The memory that it takes depends on the length of the file alone.
SavedWeights read_saved_weights(std::string_view bytes, std::string_view name);

}  // namespace tessera::partitioner
