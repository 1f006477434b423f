#include "tessera/sparse/value_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/error.hpp"

namespace tessera::sparse {
namespace {

// The range of a type, and the magnitude from which values round to infinity.
struct Limits {
  double largest = 0;
  float infinite_from = 0;
};

Limits limits_of(DataType type) {
  switch (type) {
    case DataType::Half:
      return {65504, 65520};
    case DataType::BFloat16:
      return {0x1.FEp127, 0x1.FFp127f};
    case DataType::Float:
      break;
  }
  constexpr float kLargest = std::numeric_limits<float>::max();
  return {kLargest, std::numeric_limits<float>::infinity()};
}

}  // namespace

void check_range(std::span<const float> values, DataType type, std::int64_t first) {
  if (type == DataType::Float) return;
  const Limits limits = limits_of(type);
  const auto overflows = [&limits](float value) {
    const float size = std::abs(value);
    return size >= limits.infinite_from && size <= std::numeric_limits<float>::max();
  };
  const auto found = std::ranges::find_if(values, overflows);
  if (found == values.end()) return;
  throw Error(ErrorCode::BadInput,
              fmt::format("weight {} is {}; {} holds -{} to {}; scale the weights, or use the type "
                          "float",
                          first + (found - values.begin()), *found, to_string(type), limits.largest,
                          limits.largest));
}

}  // namespace tessera::sparse
