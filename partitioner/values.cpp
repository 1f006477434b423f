#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/base/half.hpp"
#include "tessera/partitioner/internal/prefetch.hpp"
#include "tessera/partitioner/internal/stream_copy.hpp"
#include "tessera/partitioner/update.hpp"

namespace tessera::partitioner {
namespace {

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (sizeof(To) == 2)  // Half, BFloat16
    return To(static_cast<float>(value));
  else if constexpr (sizeof(From) == 2)
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

void check_value_count(std::string_view what, std::size_t length, std::int64_t expected) {
  if (static_cast<std::int64_t>(length) == expected) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: {} values given, {} expected", what, length, expected));
}

std::span<const std::int32_t> slots_of(const Buckets& buckets, std::int64_t bucket) {
  return std::span(buckets.source)
      .subspan(static_cast<std::size_t>(bucket * buckets.grid.blocks),
               static_cast<std::size_t>(buckets.grid.blocks));
}

// The slots of a bucket that hold a block. Padding is at the end. The search has no branches,
// because a bucket may be filled up to anywhere.
std::span<const std::int32_t> held_slots(const Buckets& buckets, std::int64_t bucket) {
  const auto slots = slots_of(buckets, bucket);
  const std::int32_t* at = slots.data();
  for (std::size_t n = slots.size(); n > 0;) {
    const std::size_t half = (n + 1) / 2;
    at += at[half - 1] >= 0 ? half : 0;
    n -= half;
  }
  return slots.first(static_cast<std::size_t>(at - slots.data()));
}

// Calls move(first slot, block, count) for stretches of slots that hold neighbouring blocks.
template <class Move>
void for_each_stretch(std::span<const std::int32_t> held, Move&& move) {
  for (std::size_t first = 0, end; first < held.size(); first = end) {
    end = first + 1;
    while (end < held.size() && held[end] == held[end - 1] + 1) ++end;
    move(static_cast<std::int64_t>(first), std::int64_t{held[first]},
         static_cast<std::int64_t>(end - first));
  }
}

// Rows of a cell are short and far apart, which the hardware prefetcher does not predict. With the
// hint, one for each cache line, this is 1.3 times as fast.
template <class To, class From>
void fill_elements(std::span<const std::int32_t> held, const From* values, std::span<To> to) {
  constexpr std::size_t kLine = 16, kAhead = 192;
  std::size_t i = 0;
  for (; i + kAhead < held.size(); i += kLine) {
    __builtin_prefetch(values + held[i + kAhead]);
    for (std::size_t j = i; j < i + kLine; ++j) to[j] = convert<To>(values[held[j]]);
  }
  for (; i < held.size(); ++i) to[i] = convert<To>(values[held[i]]);
}

// The same for a bucket of few slots, padding included: it is not worth a search for its begin.
template <class To, class From>
void fill_few_elements(std::span<const std::int32_t> slots, const From* values, To* to) {
  constexpr From kPadding{};
  for (std::size_t i = 0; i < slots.size(); ++i)
    to[i] = convert<To>(*(slots[i] >= 0 ? values + slots[i] : &kPadding));
}

// The method of copying blocks into bucket order: with ordinary stores, or past the caches if there
// are many blocks.
enum class Way { Store, Stream };

template <class To, class From>
Way way_of(std::int64_t area, std::int64_t slots, const To* to) {
  if (!std::is_same_v<To, From> || area == 1) return Way::Store;
  const std::int64_t bytes = area * static_cast<std::int64_t>(sizeof(To));
  const bool grained = bytes % internal::kStreamGrain == 0 &&
                       std::bit_cast<std::uintptr_t>(to) % internal::kStreamGrain == 0;
  return grained && slots * bytes >= internal::kStreamFrom ? Way::Stream : Way::Store;
}

template <class To, class From>
void fill_block(const From* from, std::int64_t area, Way way, To* to) {
  if (way == Way::Stream)
    internal::stream_copy(from, to, area * static_cast<std::int64_t>(sizeof(To)));
  else if constexpr (std::is_same_v<To, From>)
    std::copy(from, from + area, to);
  else
    std::transform(from, from + area, to, convert<To, From>);
}

// `next` is the block that is read after these, or -1.
template <class To, class From>
void fill_blocks(std::span<const std::int32_t> held, std::int64_t next, std::int64_t area,
                 const From* values, Way way, To* to) {
  for (std::size_t i = 0; i < held.size(); ++i, to += area) {
    const std::int64_t following = i + 1 < held.size() ? held[i + 1] : next;
    if (following >= 0) internal::prefetch_block(values + following * area, area);
    fill_block(values + held[i] * area, area, way, to);
  }
}

// `next` is the bucket that is filled after this one, if there is one.
template <class To, class From>
void fill_bucket(const Buckets& buckets, std::int64_t bucket, std::int64_t next, const From* values,
                 Way way, std::span<To> bucket_values) {
  const std::int64_t each = buckets.values_per_bucket(), area = buckets.grid.block.area();
  const auto to = bucket_values.subspan(static_cast<std::size_t>(bucket * each),
                                        static_cast<std::size_t>(each));
  constexpr std::int64_t kFew = 192;
  if (area == 1 && each <= kFew)
    return fill_few_elements(slots_of(buckets, bucket), values, to.data());
  const auto held = held_slots(buckets, bucket);
  const auto next_slot = static_cast<std::size_t>(next * buckets.grid.blocks);
  const bool last = next_slot >= buckets.source.size();
  if (area == 1)
    fill_elements(held, values, to);
  else
    fill_blocks(held, last ? -1 : buckets.source[next_slot], area, values, way, to.data());
  const auto padding = to.subspan(held.size() * static_cast<std::size_t>(area));
  if (way == Way::Stream)
    internal::stream_zeros(padding.data(), static_cast<std::int64_t>(padding.size_bytes()));
  else
    std::fill(padding.begin(), padding.end(), To{});
}

void check_lengths(const char* what, const Buckets& buckets, std::size_t values,
                   std::size_t bucket_values) {
  check_value_count(what, values, buckets.stats.blocks * buckets.grid.block.area());
  check_value_count(what, bucket_values, buckets.grid.buckets() * buckets.values_per_bucket());
}

}  // namespace

template <class To, class From>
void refill(const Buckets& buckets, std::span<const From> values, std::span<To> bucket_values,
            Executor& executor) {
  check_lengths("refill", buckets, values.size(), bucket_values.size());
  const TileGrid& grid = buckets.grid;
  const Way way =
      way_of<To, From>(grid.block.area(), grid.buckets() * grid.blocks, bucket_values.data());
  // Buckets are grouped in ranges because streams are finished once for each range.
  const std::int64_t ranges = std::min<std::int64_t>(grid.buckets(), 16 * executor.threads());
  executor.for_each(ranges, [&](std::int64_t i) {
    const Range part = even_part(grid.buckets(), ranges, i);
    for (std::int64_t b = part.begin; b < part.end; ++b)
      fill_bucket(buckets, b, b + 1, values.data(), way, bucket_values);
    if (way == Way::Stream) internal::finish_streams();
  });
}

template <class To, class From>
void refill_changed(const Buckets& buckets, std::span<const From> values,
                    std::span<To> bucket_values, std::span<const std::int64_t> changed) {
  check_lengths("refill_changed", buckets, values.size(), bucket_values.size());
  const Way way = way_of<To, From>(buckets.grid.block.area(),
                                   std::ssize(changed) * buckets.grid.blocks, bucket_values.data());
  for (std::size_t i = 0; i < changed.size(); ++i)
    fill_bucket(buckets, changed[i], changed[std::min(i + 1, changed.size() - 1)], values.data(),
                way, bucket_values);
  if (way == Way::Stream) internal::finish_streams();
}

template <class To, class From>
std::vector<To> to_bucket_order(const Buckets& buckets, std::span<const From> values) {
  check_value_count("to_bucket_order", values.size(),
                    buckets.stats.blocks * buckets.grid.block.area());
  std::vector<To> result(
      static_cast<std::size_t>(buckets.grid.buckets() * buckets.values_per_bucket()));
  refill<To, From>(buckets, values, result, *make_executor(ExecutorKind::Threads, 1));
  return result;
}

template <class To, class From>
void from_bucket_order(const Buckets& buckets, std::span<const From> bucket_values,
                       std::span<To> values) {
  const std::int64_t each = buckets.values_per_bucket(), area = buckets.grid.block.area();
  check_lengths("from_bucket_order", buckets, values.size(), bucket_values.size());
  for (std::int64_t b = 0; b < buckets.grid.buckets(); ++b)
    for_each_stretch(held_slots(buckets, b), [&](std::int64_t slot, std::int64_t block,
                                                 std::int64_t count) {
      const From* from = bucket_values.data() + b * each + slot * area;
      std::transform(from, from + count * area, values.data() + block * area, convert<To, From>);
    });
}

#define TESSERA_VALUES(To, From)                                                                   \
  template void refill_changed<To, From>(const Buckets&, std::span<const From>, std::span<To>,     \
                                         std::span<const std::int64_t>);                           \
  template void refill<To, From>(const Buckets&, std::span<const From>, std::span<To>, Executor&); \
  template std::vector<To> to_bucket_order<To, From>(const Buckets&, std::span<const From>);       \
  template void from_bucket_order<To, From>(const Buckets&, std::span<const From>, std::span<To>);
TESSERA_VALUES(float, float)
TESSERA_VALUES(float, double)
TESSERA_VALUES(float, Half)
TESSERA_VALUES(float, BFloat16)
TESSERA_VALUES(double, float)
TESSERA_VALUES(double, double)
TESSERA_VALUES(double, Half)
TESSERA_VALUES(BFloat16, float)
TESSERA_VALUES(Half, float)
TESSERA_VALUES(Half, double)
TESSERA_VALUES(Half, Half)
#undef TESSERA_VALUES

}  // namespace tessera::partitioner
