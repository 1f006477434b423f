#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/internal/change_by_part.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner::internal {

// A block that comes in, and its position in the new matrix.
struct Arrival {
  sparse::BlockAt at;
  std::int32_t position = 0;
};

// Where the blocks of a matrix go when its pattern changes. Positions before `first` stay, those
// behind the last change all move by the same.
struct Moves {
  static constexpr std::int32_t kGone = -2;  // not -1, which is padding in a source map
  std::int32_t first = 0;
  std::vector<std::int32_t> new_position;  // [old positions from `first`], kGone for removed ones
  std::int32_t shift_behind = 0;
  std::vector<Arrival> arrivals;  // in order of the new matrix

  // Does anything move of what lies from position `least` to `most`?
  bool reach(std::int32_t least, std::int32_t most) const {
    return most >= first && (shift_behind != 0 || least - first < std::ssize(new_position));
  }
  std::int32_t operator()(std::int32_t old) const {
    if (old < first) return old;
    const auto i = static_cast<std::size_t>(old - first);
    return i < new_position.size() ? new_position[i] : old + shift_behind;
  }
};

// Parts that are cut again have neither positions (kGone stands there) nor arrivals.
// Error{InvalidArgument} that names the place when `matrix` cannot be what `change` makes of a
// matrix of `old_blocks` blocks, as far as the places of the change in the other parts show it.
// O(blocks between the first and the last change + changes * log(row)).
Moves find_moves(const Pattern& matrix, std::int64_t old_blocks, const ChangeByPart& change);

}  // namespace tessera::partitioner::internal
