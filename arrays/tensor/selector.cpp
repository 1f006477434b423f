#include "tessera/arrays/tensor/selector.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::arrays {

std::int64_t resolve_index(std::int64_t index, std::int64_t length, std::int64_t dimension) {
  if (index >= 0 && index < length) return index;
  if (index < 0 && index >= -length) return index + length;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("index {} lies outside dimension {}, which has {} indices; choose one in "
                          "{}..{}",
                          index, dimension, length, -length, length - 1));
}

Range resolve(const MatrixSelector& selector, std::int64_t length, std::int64_t dimension) {
  if (std::holds_alternative<All>(selector)) return {0, length};
  if (const auto* point = std::get_if<Point>(&selector)) {
    const std::int64_t at = resolve_index(point->at, length, dimension);
    return {at, at + 1};
  }
  const Interval interval = std::get<Interval>(selector);
  const std::int64_t begin = interval.begin < 0 ? interval.begin + length : interval.begin;
  const std::int64_t end = interval.end < 0 ? interval.end + length : interval.end;
  if (begin < 0 || begin >= end || end > length)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("interval [{}, {}) is no part of dimension {}, which has {} indices; "
                            "it must hold at least one of them and no other",
                            interval.begin, interval.end, dimension, length));
  return {begin, end};
}

std::vector<std::int64_t> resolve(const Specified& list, std::int64_t length,
                                  std::int64_t dimension) {
  if (list.at.empty())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("no index was specified for dimension {}; give at least one", dimension));
  std::vector<std::int64_t> indices;
  for (const std::int64_t at : list.at) indices.push_back(resolve_index(at, length, dimension));
  return indices;
}

MatrixSelector contiguous(const Selector& selector) {
  if (const auto* point = std::get_if<Point>(&selector)) return *point;
  if (const auto* part = std::get_if<Interval>(&selector)) return *part;
  const auto* list = std::get_if<Specified>(&selector);
  if (list != nullptr && list->at.size() == 1) return Point{list->at.front()};
  return All{};
}

}  // namespace tessera::arrays
