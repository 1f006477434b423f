#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/arrays/internal/flat.hpp"
#include "tessera/base/radix_sort.hpp"

namespace tessera::arrays::internal {

// The parts into which entries are scattered, and the first position of each part.
struct SortParts {
  int count_bits = 0;
  std::vector<std::int64_t> begin;
};

// Moves entries to `to`, ordered by part_of(entry), which is below 2^count_bits. Chunks count their
// entries in every part and then move them, so all threads write to places of their own.
template <class E, class PartOf>
SortParts scatter(const RawVector<E>& from, RawVector<E>& to, int count_bits, PartOf&& part_of,
                  Executor& executor) {
  // A chunk is long enough for its counters to be few beside its entries.
  constexpr std::int64_t kEntries = 1 << 17;
  const std::size_t parts = std::size_t{1} << count_bits;
  const auto count = static_cast<std::int64_t>(from.size());
  std::vector<std::vector<std::int64_t>> next(std::size_t((count + kEntries - 1) / kEntries));
  executor.for_each(std::ssize(next), [&](std::int64_t c) {
    std::vector<std::int64_t>& counts = next[std::size_t(c)];
    counts.assign(parts, 0);
    const std::int64_t end = std::min(count, (c + 1) * kEntries);
    for (std::int64_t k = c * kEntries; k < end; ++k) ++counts[part_of(from[std::size_t(k)])];
  });
  SortParts result{count_bits, std::vector<std::int64_t>(parts + 1)};
  std::int64_t sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    result.begin[part] = sum;
    for (std::vector<std::int64_t>& counts : next) sum += std::exchange(counts[part], sum);
  }
  result.begin[parts] = sum;
  executor.for_each(std::ssize(next), [&](std::int64_t c) {
    std::vector<std::int64_t>& at = next[std::size_t(c)];
    const std::int64_t end = std::min(count, (c + 1) * kEntries);
    for (std::int64_t k = c * kEntries; k < end; ++k) {
      const E& entry = from[std::size_t(k)];
      to[std::size_t(at[part_of(entry)]++)] = entry;
    }
  });
  return result;
}

// Sorts entries by bits [first_bit, first_bit + bits) of their key; entries of equal bits keep
// their order. The uppermost bits scatter the entries into parts, chunk by chunk on all threads;
// then threads sort parts by the bits that remain, which fit the caches.
// O(entries * bits / 8), with a second copy of the entries.
template <class E>
void sort_entries(RawVector<E>& entries, int first_bit, int bits, Executor& executor) {
  const auto key_of = [first_bit, bits](const E& entry) {
    const std::uint64_t key = entry.key >> first_bit;
    return bits == 64 ? key : key & ((std::uint64_t{1} << bits) - 1);
  };
  const auto count = static_cast<std::int64_t>(entries.size());
  if (bits == 0 || count < 2) return;
  RawVector<E> other(entries.size());
  if (count <= kChunk) {
    if (radix_sort(std::span(entries), std::span(other), bits, key_of).data() != entries.data())
      entries.swap(other);
    return;
  }
  // 2048 streams on large pages still fit the second-level cache, and save a pass for many shapes.
  const int top = std::min(bits, count >= (1 << 19) ? 11 : 8), low = bits - top;
  const SortParts parts = scatter(
      entries, other, top, [&](const E& entry) { return std::size_t(key_of(entry) >> low); },
      executor);
  if (low == 0) return entries.swap(other);
  executor.for_each(std::ssize(parts.begin) - 1, [&](std::int64_t part) {
    const auto begin = std::size_t(parts.begin[std::size_t(part)]);
    const auto size = std::size_t(parts.begin[std::size_t(part) + 1]) - begin;
    const std::span<E> from(other.data() + begin, size), to(entries.data() + begin, size);
    const auto low_key = [&](const E& entry) {
      return key_of(entry) & ((std::uint64_t{1} << low) - 1);
    };
    const std::span<E> sorted = radix_sort(from, to, low, low_key);
    if (sorted.data() != to.data()) std::copy(sorted.begin(), sorted.end(), to.begin());
  });
}

}  // namespace tessera::arrays::internal
