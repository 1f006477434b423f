#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/tensor_layout.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/units.hpp"

namespace tessera::arrays::internal {

// The buffers that a tensor and its views share. Invariants:
//   1. there are values.size() entries; entry k has the coordinates indices[k][0 .. rank)
//   2. entries before `sorted` ascend strictly and lexicographically by the dimensions in `order`
//   3. entries from `sorted` on are puts in the order of the calls: a later one replaces an earlier
//      one, and zero removes
//   4. `wanted` is the order that the next settle() establishes
// After settle() there are no puts, order == wanted, and unused capacity is an eighth at most. One
// thread at a time may write; any number of threads may read settled buffers.
template <class T>
struct CooStore {
  std::vector<std::int64_t> shape;    // [rank]
  std::vector<std::int64_t> order;    // [rank] a permutation
  std::vector<std::int64_t> wanted;   // [rank] a permutation
  std::vector<std::int32_t> indices;  // [entries][rank]
  std::vector<T> values;              // [entries]
  std::size_t sorted = 0;

  // Makes buffers without entries, in natural order. Throws Error{InvalidArgument} for a dimension
  // outside 0..2^31 - 1.
  explicit CooStore(std::vector<std::int64_t> lengths);

  std::size_t rank() const { return shape.size(); }
  const std::int32_t* index(std::size_t entry) const { return indices.data() + entry * rank(); }
  bool is_settled() const { return sorted == values.size() && order == wanted; }
  Bytes bytes() const;

  // Compares two indices by the dimensions in `order` and returns <0, 0 or >0.
  int compare(const std::int32_t* a, const std::int32_t* b) const;

  // Takes over entries in any order; there must be none before. Throws Error{BadInput} for
  // duplicates.
  void take(std::vector<std::int32_t> new_indices, std::vector<T> new_values);

  // Overwrites an entry in O(log entries) if it is stored and no puts wait; else adds a put. That
  // is amortised O(log entries) too, because puts are merged when there are as many as sorted
  // entries.
  void put(const std::int32_t* at, T value);

  // Merges the puts and establishes the wanted order. O(1) if settled; else O(puts * bits / 8 +
  // entries), and O(entries * bits / 8) for a change of order.
  void settle();

  // Returns the entry of a settled store with these coordinates. O(rank * log(entries)).
  std::optional<std::size_t> find(const std::int32_t* at) const;

  // Returns a range of entries of a settled store that contains all those in the view of `layout`.
  // A binary search along `order` narrows it as long as the layout fixes one index after the other.
  Range narrow(const TensorLayout& layout) const;

 private:
  std::size_t lower_bound(const std::int32_t* at) const;
  void append(const std::int32_t* at, T value);
  bool puts_only_append() const;
  void merge_puts();
  void gather(const std::vector<std::uint64_t>& positions);
};

// Returns an index as text, for example "(2, 0, 1)".
std::string to_text(const std::int32_t* index, std::size_t rank);

}  // namespace tessera::arrays::internal
