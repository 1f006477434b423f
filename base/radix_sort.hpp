#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

// Up to here insertion beats clearing and adding up the counters of a radix pass.
inline constexpr std::size_t kInsertionSortLength = 48;

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
// O(entries * key_bits / 8) whatever the order before: one sweep counts all digits of eight bits,
// then one sweep a digit moves the entries. 256 targets stay within first-level cache and page
// buffers, so a shuffled list costs hardly more than a sorted one. `room` is as long as `entries`;
// the answer is whichever of the two holds the sorted entries.
template <class Entry, class KeyOf>
std::span<Entry> radix_sort(std::span<Entry> entries, std::span<Entry> room, int key_bits,
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
    for (const Entry& entry : entries) room[next[(key_of(entry) >> (8 * d)) & 255]++] = entry;
    std::swap(entries, room);
  }
  return entries;
}

// The same in place. `scratch` grows to the size of `entries` once and is kept by callers that sort
// often.
template <class Entry, class KeyOf>
void radix_sort(std::vector<Entry>& entries, std::vector<Entry>& scratch, int key_bits,
                KeyOf key_of) {
  scratch.resize(entries.size());
  const auto sorted = radix_sort(std::span(entries), std::span(scratch), key_bits, key_of);
  if (sorted.data() != entries.data()) entries.swap(scratch);
}

}  // namespace tessera
