#pragma once

#include <cstdint>
#include <optional>

namespace tessera::arrays {

// Every index start, start + step, ... that lies before stop; `count` of them.
struct Progression {
  std::int64_t start = 0, step = 1, count = 0;
  std::int64_t operator[](std::int64_t i) const { return start + i * step; }
  friend bool operator==(const Progression&, const Progression&) = default;
};

// start:stop:step as in Python: negative numbers count from the end, those beyond the ends are
// brought to them, a negative step walks backwards, and what is left out is the whole way.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt, stop = std::nullopt, step = std::nullopt;

  // What it takes of a dimension of that length, at least 0; step 0 is Error{InvalidArgument}.
  // Example: Slice{-7, {}, 2} of 5 is 0, 2, 4; Slice{{}, {}, -1} of 3 is 2, 1, 0.
  Progression reduced(std::int64_t length) const;
  // The number of indices alone.
  std::int64_t items(std::int64_t length) const { return reduced(length).count; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace tessera::arrays
