#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::arrays {

// What is taken of one dimension. A negative index counts from the end of the dimension: -1 is its
// last index.

// Every index; also what a list of selectors means for the dimensions it does not reach.
struct All {
  friend bool operator==(const All&, const All&) = default;
};
// One index; the dimension goes away (see CooTensor::select for when it stays with length 1).
struct Point {
  std::int64_t at = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
// begin .. end - 1, at least one index. `end` may be the length of the dimension.
struct Interval {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};
// A new dimension of length 1 at this place; takes no dimension of what is viewed.
struct NewAxis {
  friend bool operator==(const NewAxis&, const NewAxis&) = default;
};
// These indices, in this order, repeats allowed; the result is a copy. One index alone is a Point.
struct Specified {
  std::vector<std::int64_t> at;
  friend bool operator==(const Specified&, const Specified&) = default;
};

// What is taken of one dimension of a tensor; matrices know no new or listed axes.
using Selector = std::variant<All, Point, Interval, NewAxis, Specified>;
using MatrixSelector = std::variant<All, Point, Interval>;

// The indices a selector takes of a dimension of that length, none of them negative.
// Error{InvalidArgument} when one lies outside, or when an interval is empty; `dimension` names the
// dimension in the message.
Range resolve(const MatrixSelector& selector, std::int64_t length, std::int64_t dimension);

// `index`, or index + length when it is negative; Error{InvalidArgument} when that lies outside.
std::int64_t resolve_index(std::int64_t index, std::int64_t length, std::int64_t dimension);

}  // namespace tessera::arrays
