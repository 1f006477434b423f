#pragma once

#include <cstdint>
#include <optional>

namespace tessera::arrays {

// The `count` indices start, start + step, start + 2 * step, and so on.
struct Progression {
  std::int64_t start = 0, step = 1, count = 0;
  std::int64_t operator[](std::int64_t i) const { return start + i * step; }
  friend bool operator==(const Progression&, const Progression&) = default;
};

// A slice start:stop:step as in Python: negative numbers count from the end, numbers beyond the
// ends are clamped to them, a negative step walks backwards, and a missing start or stop is the end
// of the dimension in the direction of the step. A missing step is 1.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt, stop = std::nullopt, step = std::nullopt;

  // Returns the indices that the slice takes of a dimension of that length, which is at least 0.
  // Throws Error{InvalidArgument} if the step is 0.
  // Example: Slice{-7, {}, 2} of 5 is 0, 2, 4; Slice{{}, {}, -1} of 3 is 2, 1, 0.
  Progression reduced(std::int64_t length) const;

  // Returns the number of these indices.
  std::int64_t items(std::int64_t length) const { return reduced(length).count; }

  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace tessera::arrays
