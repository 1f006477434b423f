#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::arrays {

// Selectors choose indices of one dimension. A negative index counts from the end of the dimension:
// -1 is its last index.

// Selects every index. Dimensions that a list of selectors does not reach are selected in this way.
struct All {
  friend bool operator==(const All&, const All&) = default;
};

// Selects one index and removes the dimension (CooTensor::select says when the dimension stays with
// length 1).
struct Point {
  std::int64_t at = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

// Selects the indices begin .. end - 1, at least one. `end` may be the length of the dimension.
struct Interval {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Adds a new dimension of length 1 at this place; it uses up no dimension of the tensor.
struct NewAxis {
  friend bool operator==(const NewAxis&, const NewAxis&) = default;
};

// Selects these indices in this order; an index may be repeated. The result is a copy. A single
// index removes the dimension as a Point does.
struct Specified {
  std::vector<std::int64_t> at;
  friend bool operator==(const Specified&, const Specified&) = default;
};

// A selector of a tensor, and one of a matrix view, which has no added or listed dimensions.
using Selector = std::variant<All, Point, Interval, NewAxis, Specified>;
using MatrixSelector = std::variant<All, Point, Interval>;

// Returns the indices that a selector takes of a dimension of that length; none is negative. Throws
// Error{InvalidArgument} if an index is outside the dimension or an interval is empty. `dimension`
// is the number of the dimension in the message.
Range resolve(const MatrixSelector& selector, std::int64_t length, std::int64_t dimension);

// Returns the listed indices in their order; none is negative. Throws Error{InvalidArgument} if the
// list is empty or an index is outside the dimension.
std::vector<std::int64_t> resolve(const Specified& list, std::int64_t length,
                                  std::int64_t dimension);

// Returns the selector of the consecutive indices that a selector takes: a list of one index is a
// Point, and All stands for longer lists and new axes, which take no consecutive indices.
MatrixSelector contiguous(const Selector& selector);

// Returns `index`, or index + length if it is negative. Throws Error{InvalidArgument} if the result
// is outside the dimension.
std::int64_t resolve_index(std::int64_t index, std::int64_t length, std::int64_t dimension);

}  // namespace tessera::arrays
