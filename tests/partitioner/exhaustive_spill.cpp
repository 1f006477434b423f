#include "tessera/tests/partitioner/exhaustive_spill.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace tessera::partitioner::test {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

struct Place {
  std::int64_t dx, dy;
};

// All placements at the given distances. A state is the free blocks and words of all buckets.
class Trial {
 public:
  Trial(const TinySpill& tiny, const std::vector<Place>& places)
      : tiny_(tiny), places_(places), memory_(tiny.blocks.size() + 1) {
    for (std::size_t i = 0; i < tiny.blocks.size(); ++i) {
      free_.push_back(tiny.bucket_blocks);
      free_.push_back(tiny.bucket_words);
    }
  }
  std::int64_t least_travel() { return from_cell(0); }

 private:
  std::int64_t from_cell(std::size_t cell) {
    if (cell == tiny_.blocks.size()) return 0;
    const std::vector<std::int64_t> state = usable(cell);
    const auto known = memory_[cell].find(state);
    if (known != memory_[cell].end()) return known->second;
    const std::int64_t least = from_place(cell, 0, tiny_.blocks[cell]);
    memory_[cell][state] = least;
    return least;
  }

  // The free room without words that cannot be of use: most states are then met again.
  std::vector<std::int64_t> usable(std::size_t cell) const {
    const auto cells_left = std::int64_t(tiny_.blocks.size() - cell);
    std::vector<std::int64_t> state = free_;
    for (std::size_t i = 0; i < state.size(); i += 2)
      state[i + 1] = std::min(state[i + 1], cells_left * tiny_.header_words + 3 * state[i]);
    return state;
  }

  std::int64_t from_place(std::size_t cell, std::size_t place, std::int64_t left) {
    if (left == 0) return from_cell(cell + 1);
    if (place == places_.size()) return kNever;
    const auto [dx, dy] = places_[place];
    const Dims& s = tiny_.splits;
    const auto c = std::int64_t(cell);
    const auto bucket = std::size_t((c / s.y + s.x - dx) % s.x * s.y + (c % s.y + s.y - dy) % s.y);
    std::int64_t least = from_place(cell, place + 1, left);
    for (std::int64_t n = 1; n <= left; ++n) {
      const std::int64_t words = tiny_.header_words + 3 * n;
      if (free_[2 * bucket] < n || free_[2 * bucket + 1] < words) break;
      free_[2 * bucket] -= n, free_[2 * bucket + 1] -= words;
      least = std::min(least, n * (dx + dy) + from_place(cell, place + 1, left - n));
      free_[2 * bucket] += n, free_[2 * bucket + 1] += words;
    }
    return least;
  }

  const TinySpill& tiny_;
  const std::vector<Place>& places_;
  std::vector<std::int64_t> free_;
  std::vector<std::map<std::vector<std::int64_t>, std::int64_t>> memory_;
};

}  // namespace

std::optional<LeastSpill> try_every_spill(const TinySpill& tiny) {
  const Dims& s = tiny.splits;
  for (std::int64_t steps = 0; steps < s.x * s.y; ++steps) {
    std::int64_t least = kNever;
    // Counts in base splits.y + 1: how far along y at each x.
    std::vector<std::int64_t> y_end(std::size_t(s.x), 0);
    for (bool more = true; more;) {
      std::vector<Place> places;
      for (std::int64_t x = 0; x < s.x; ++x)
        for (std::int64_t y = 0; y < y_end[std::size_t(x)]; ++y) places.push_back({x, y});
      if (y_end[0] > 0 && std::int64_t(places.size()) == steps + 1)
        least = std::min(least, Trial(tiny, places).least_travel());
      std::size_t digit = 0;
      while (digit < y_end.size() && y_end[digit] == s.y) y_end[digit++] = 0;
      more = digit < y_end.size();
      if (more) ++y_end[digit];
    }
    if (least < kNever) return LeastSpill{steps, least};
  }
  return std::nullopt;
}

}  // namespace tessera::partitioner::test
