#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"

// The blocks of largest gradient that a pattern does not store, as a tile keeps them while the
// parts of a dense gradient pass by.
namespace tessera::codelets {

// A block with its score. `place` counts the blocks of the whole matrix row by row.
struct ScoredPlace {
  float score = 0;  // never below 0 or NaN
  std::uint32_t place = 0;

  friend bool operator==(const ScoredPlace&, const ScoredPlace&) = default;
};

// Returns true if `a` comes first among the best: the larger score and, of equal ones, the lower
// place.
inline bool is_better(const ScoredPlace& a, const ScoredPlace& b) {
  return a.score != b.score ? a.score > b.score : a.place < b.place;
}

// Rules that make the score of a block from the magnitudes of its gradients. The kernels below add
// the rows of each column and then the columns, in floats.
enum class BlockScore {
  Sum,
  Max,
  Mean  // orders blocks of one shape as Sum does, so that the kernels below take sums
};

// Returns "sum", "max" or "mean".
const char* to_string(BlockScore score);

// A tile's list of the best places so far. It needs the memory of 2 * keep places: `keep` of them
// are selected when it is full, and only places that reach `threshold` are added.
struct BestList {
  ScoredPlace* places = nullptr;
  std::int64_t keep = 0;               // at least 1
  std::int64_t count = 0;              // at most 2 * keep
  float threshold = 0;                 // no place with a lower score can be among the best
  const ScoredPlace* after = nullptr;  // if it is not null, only places that it is better than
};

// One part of the dense gradient, whose blocks are whole but for the last ones of the matrix.
struct GradientPart {
  const float* gradients = nullptr;  // [rows][columns], gapless
  std::int64_t rows = 0, columns = 0;
  BlockShape block;
  BlockScore score = BlockScore::Sum;
  std::int64_t first_row = 0, first_column = 0;  // in blocks of the matrix
  std::int64_t matrix_columns = 0;               // in blocks
  // A bit for each block of the part, row by row, 32 in a word from the lowest bit on: 1 if the
  // pattern stores it.
  std::span<const std::uint32_t> taken;
};

// The work that depends on the data, for cost/selection_cycles.hpp.
struct SelectionWork {
  std::int64_t added = 0;       // places that reached the threshold and are free
  std::int64_t selections = 0;  // of the best `keep` from a full list

  SelectionWork& operator+=(const SelectionWork& other) {
    added += other.added;
    selections += other.selections;
    return *this;
  }
  friend bool operator==(const SelectionWork&, const SelectionWork&) = default;
};

// Adds the free blocks of a part to the list. A score that is not finite counts as infinity, so
// that such a place is among the best. Never allocates, throws or prints; may run on many tiles at
// the same time. The reference kernel looks at one block after the other; the other one has the
// same results and work, with vectors.
SelectionWork add_best_reference(const GradientPart& part, BestList& list) noexcept;
SelectionWork add_best(const GradientPart& part, BestList& list) noexcept;

// Selects the best `keep` places of a list and sorts them, best first.
SelectionWork finish_best(BestList& list) noexcept;

}  // namespace tessera::codelets
