#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::partitioner::internal {

// LongestFirst sorts items by their counts, the largest first, and keeps the order of equal ones.
// An object must not be used by several threads.
class LongestFirst {
 public:
  // Calls place(item, position) for the items 0 .. items - 1 in order. `most` is the largest
  // count_of(item); none may be negative. O(items + most).
  template <class CountOf, class Place>
  void place(std::size_t items, std::int32_t most, CountOf&& count_of, Place&& place) {
    const auto width = static_cast<int>(std::bit_width(items));
    if ((std::int64_t{most} + 1) * width <= 64)
      return place_packed(items, most, width, count_of, place);
    next_.assign(static_cast<std::size_t>(most) + 1, 0);
    const auto next = [&](std::size_t i) -> std::size_t& {
      return next_[static_cast<std::size_t>(most - count_of(i))];
    };
    for (std::size_t i = 0; i < items; ++i) ++next(i);
    std::size_t before = 0;
    for (std::size_t& n : next_) before += std::exchange(n, before);
    for (std::size_t i = 0; i < items; ++i) place(i, next(i)++);
  }

 private:
  // The same with all counters in one word, `width` bits each. Few items have few different counts,
  // and a counter in memory that is increased again at once takes five cycles each time.
  template <class CountOf, class Place>
  static void place_packed(std::size_t items, std::int32_t most, int width, CountOf&& count_of,
                           Place&& place) {
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::uint64_t counters = 0, ones = 0;
    for (std::size_t i = 0; i < items; ++i)
      counters += std::uint64_t{1} << width * (most - count_of(i));
    for (std::int32_t count = 0; count < most; ++count) ones = (ones << width) + 1;
    // The product sums, in each field, all fields below. No sum is larger than `items`.
    std::uint64_t next = counters * (ones << width);
    for (std::size_t i = 0; i < items; ++i) {
      const int shift = width * (most - count_of(i));
      place(i, static_cast<std::size_t>(next >> shift & mask));
      next += std::uint64_t{1} << shift;
    }
  }

  std::vector<std::size_t> next_;  // position of the next item of each count, largest count first
};

}  // namespace tessera::partitioner::internal
