#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/tensor_layout.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/units.hpp"

namespace tessera::arrays::internal {

// The buffers that a tensor and its views share.
//   1. values.size() entries; that of entry k has the coordinates indices[k][0 .. rank)
//   2. entries before `sorted` ascend lexicographically by the dimensions in `order`, no two alike
//   3. entries from `sorted` on are puts in the order they came: a later one replaces an earlier,
//      and zero removes
//   4. `wanted` is the order that the next settle() brings about
// settle() leaves no puts behind, order == wanted, and an eighth of unused capacity at most.
// Written by one thread at a time; settled buffers may be read by many.
template <class T>
struct CooStore {
  std::vector<std::int64_t> shape;    // [rank]
  std::vector<std::int64_t> order;    // [rank] a permutation
  std::vector<std::int64_t> wanted;   // [rank] a permutation
  std::vector<std::int32_t> indices;  // [entries][rank]
  std::vector<T> values;              // [entries]
  std::size_t sorted = 0;

  // No entries yet, in natural order. Error{InvalidArgument} for a dimension outside 0..2^31 - 1.
  explicit CooStore(std::vector<std::int64_t> lengths);

  std::size_t rank() const { return shape.size(); }
  const std::int32_t* index(std::size_t entry) const { return indices.data() + entry * rank(); }
  bool is_settled() const { return sorted == values.size() && order == wanted; }
  Bytes bytes() const;

  // <0, 0, >0 by the dimensions in `order`.
  int compare(const std::int32_t* a, const std::int32_t* b) const;
  // Takes entries in any order, with none there yet. Error{BadInput} for twins.
  void take(std::vector<std::int32_t> new_indices, std::vector<T> new_values);
  // O(log entries) when it overwrites while nothing is waiting; else added to the puts, amortised
  // O(log entries) too, because they are merged when there are as many as sorted entries.
  void put(const std::int32_t* at, T value);
  // O(1) when settled; else O(puts * bits / 8 + entries), a change of order O(entries * bits / 8).
  void settle();

  // Of a settled store: the entry with these coordinates, O(rank * log(entries)).
  std::optional<std::size_t> find(const std::int32_t* at) const;
  // Of a settled store: the entries among which all those seen by `layout` lie. Cut by binary
  // search along `order` as far as the layout fixes one index after the other.
  Range narrow(const TensorLayout& layout) const;

 private:
  std::size_t lower_bound(const std::int32_t* at) const;
  void append(const std::int32_t* at, T value);
  bool puts_only_append() const;
  void merge_puts();
  void gather(const std::vector<std::uint64_t>& positions);
};

// "(2, 0, 1)"
std::string to_text(const std::int32_t* index, std::size_t rank);

}  // namespace tessera::arrays::internal
