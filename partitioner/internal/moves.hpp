#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/internal/change_by_part.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner::internal {

// An added block and its position in the new matrix.
struct Arrival {
  sparse::BlockAt at;
  std::int32_t position = 0;
};

// Moves maps old positions of blocks to new ones when the pattern of a matrix changes. Positions
// before `first` stay the same; positions after the last change are all shifted by the same amount.
struct Moves {
  static constexpr std::int32_t kGone = -2;  // not -1, which marks padding in a source map
  std::int32_t first = 0;
  std::vector<std::int32_t> new_position;  // [old positions from `first`], kGone if removed
  std::int32_t shift_behind = 0;
  std::vector<Arrival> arrivals;  // in order of the new matrix

  // True if any position from `least` to `most` changes.
  bool reach(std::int32_t least, std::int32_t most) const {
    return most >= first && (shift_behind != 0 || least - first < std::ssize(new_position));
  }
  std::int32_t operator()(std::int32_t old) const {
    if (old < first) return old;
    const auto i = static_cast<std::size_t>(old - first);
    return i < new_position.size() ? new_position[i] : old + shift_behind;
  }
};

// Finds the new position of every block. Parts that are cut again get no positions (kGone instead)
// and no arrivals.
//
// Throws Error{InvalidArgument}, which names the place, if `matrix` cannot be the result of
// `change` on a matrix of `old_blocks` blocks, as far as the changes in the other parts show it.
// O(blocks between the first and the last change + changes * log(row)).
Moves find_moves(const Pattern& matrix, std::int64_t old_blocks, const ChangeByPart& change);

}  // namespace tessera::partitioner::internal
