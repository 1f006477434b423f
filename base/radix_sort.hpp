#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

// Up to this number of entries insertion sort is faster than radix sort, which has to clear and
// sum its counters.
inline constexpr std::size_t kInsertionSortLength = 48;

// Sorts by key_of(entry) in place; equal keys keep their order. O(entries^2).
template <class Entry, class KeyOf>
void insertion_sort(std::span<Entry> entries, KeyOf key_of) {
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const Entry moving = entries[i];
    std::size_t to = i;
    for (; to > 0 && key_of(entries[to - 1]) > key_of(moving); --to) entries[to] = entries[to - 1];
    entries[to] = moving;
  }
}

// Sorts by key_of(entry), an unsigned number below 2^key_bits; equal keys keep their order.
// `scratch` has the length of `entries`. Returns the span that holds the sorted
// entries, which is either `entries` or `scratch`.
// Cost: O(entries * key_bits / 8) for any initial order: one sweep counts all digits of eight bits,
// then one sweep per digit moves the entries. The 256 targets of a sweep stay within the
// first-level cache and the TLB, so a shuffled list costs hardly more than a sorted one.
template <class Entry, class KeyOf>
std::span<Entry> radix_sort(std::span<Entry> entries, std::span<Entry> scratch, int key_bits,
                            KeyOf key_of) {
  if (entries.size() <= kInsertionSortLength) {
    insertion_sort(entries, key_of);
    return entries;
  }
  const int digits = (key_bits + 7) / 8;
  std::array<std::array<std::size_t, 256>, 8> counts{};
  for (const Entry& entry : entries) {
    std::uint64_t key = key_of(entry);
    for (int d = 0; d < digits; ++d, key >>= 8) ++counts[std::size_t(d)][key & 255];
  }
  for (int d = 0; d < digits; ++d) {
    std::array<std::size_t, 256>& next = counts[std::size_t(d)];
    if (next[(key_of(entries.front()) >> (8 * d)) & 255] == entries.size()) continue;
    std::size_t sum = 0;
    for (std::size_t& n : next) sum += std::exchange(n, sum);
    for (const Entry& entry : entries) scratch[next[(key_of(entry) >> (8 * d)) & 255]++] = entry;
    std::swap(entries, scratch);
  }
  return entries;
}

// Sorts `entries` by key_of(entry) as above, with the result in `entries`. `scratch` is resized to
// the length of `entries`; callers that sort often pass the same vector again.
template <class Entry, class KeyOf>
void radix_sort(std::vector<Entry>& entries, std::vector<Entry>& scratch, int key_bits,
                KeyOf key_of) {
  scratch.resize(entries.size());
  const auto sorted = radix_sort(std::span(entries), std::span(scratch), key_bits, key_of);
  if (sorted.data() != entries.data()) entries.swap(scratch);
}

}  // namespace tessera
