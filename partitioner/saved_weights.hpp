#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tessera/base/data_type.hpp"
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

// One layout of a layer's weights: the text of its grid, and the buckets of each group.
struct SavedLayout {
  std::string grid;
  std::vector<SavedBuckets> groups;
};

// The weights of a layer as a machine keeps them, for a file: a host encodes a pattern once, and
// machines take the buckets later without encoding it again.
struct SavedWeights {
  // Each group has the pattern of its weights as they were given, without values.
  std::vector<sparse::Csr<float>> patterns;

  // Each group has its values in the order of the first layout's buckets,
  // [buckets][values_per_bucket] in this type, little-endian.
  DataType type = DataType::Float;
  std::vector<std::vector<std::byte>> values;

  // The layout of R, and behind it that of transpose(R) if GradA has one of its own.
  std::vector<SavedLayout> layouts;
};

// Returns every field of a grid in words. Weights are restored to a grid of the same text only.
std::string to_text(const TileGrid& grid);

// Returns the part of buckets that is saved.
SavedBuckets saved(const Buckets& buckets);

// Returns the buckets again: restored(b.grid, saved(b), matrix, ..) has the fields of b, where b
// are buckets of the pattern of `matrix`. Throws Error{BadInput} if the words are not as many or
// not those that encode() writes for the grid, naming bucket and word, if they hold another pattern
// than the matrix, and if the statistics contradict them. O(blocks log(blocks of a row)).
Buckets restored(const TileGrid& grid, const SavedBuckets& saved, const sparse::Csr<float>& matrix,
                 Executor& executor);

}  // namespace tessera::partitioner
