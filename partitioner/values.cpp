#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner {
namespace {

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, Half>)
    return Half(static_cast<float>(value));
  else if constexpr (std::is_same_v<From, Half>)
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

void check_length(std::string_view what, std::size_t length, std::int64_t expected) {
  if (static_cast<std::int64_t>(length) == expected) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: {} values given, {} expected", what, length, expected));
}

// Calls move(slot's first value, block's first value, area) for every slot that holds a block.
template <class Move>
void for_each_held_block(const Buckets& buckets, Move&& move) {
  const std::int64_t area = buckets.grid.block.area();
  for (std::size_t slot = 0; slot < buckets.source.size(); ++slot)
    if (buckets.source[slot] >= 0)
      move(static_cast<std::int64_t>(slot) * area, buckets.source[slot] * area, area);
}

}  // namespace

template <class To, class From>
std::vector<To> to_bucket_order(const Buckets& buckets, std::span<const From> values) {
  check_length("to_bucket_order", values.size(), buckets.stats.blocks * buckets.grid.block.area());
  std::vector<To> result(
      static_cast<std::size_t>(buckets.grid.buckets() * buckets.values_per_bucket()));
  for_each_held_block(buckets, [&](std::int64_t slot, std::int64_t block, std::int64_t area) {
    std::transform(values.begin() + block, values.begin() + block + area, result.begin() + slot,
                   convert<To, From>);
  });
  return result;
}

template <class To, class From>
std::vector<To> from_bucket_order(const Buckets& buckets, std::span<const From> bucket_values) {
  check_length("from_bucket_order", bucket_values.size(),
               buckets.grid.buckets() * buckets.values_per_bucket());
  std::vector<To> result(
      static_cast<std::size_t>(buckets.stats.blocks * buckets.grid.block.area()));
  for_each_held_block(buckets, [&](std::int64_t slot, std::int64_t block, std::int64_t area) {
    std::transform(bucket_values.begin() + slot, bucket_values.begin() + slot + area,
                   result.begin() + block, convert<To, From>);
  });
  return result;
}

#define TESSERA_VALUES(To, From)                                                             \
  template std::vector<To> to_bucket_order<To, From>(const Buckets&, std::span<const From>); \
  template std::vector<To> from_bucket_order<To, From>(const Buckets&, std::span<const From>);
TESSERA_VALUES(float, float)
TESSERA_VALUES(float, double)
TESSERA_VALUES(float, Half)
TESSERA_VALUES(double, float)
TESSERA_VALUES(double, double)
TESSERA_VALUES(double, Half)
TESSERA_VALUES(Half, float)
TESSERA_VALUES(Half, double)
TESSERA_VALUES(Half, Half)
#undef TESSERA_VALUES

}  // namespace tessera::partitioner
