#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/selector.hpp"
#include "tessera/arrays/tensor/tensor_layout.hpp"
#include "tessera/base/units.hpp"

namespace tessera::arrays {

namespace internal {
template <class T>
struct CooStore;
template <class T>
struct CooAccess;
}  // namespace internal

// Bytes of the buffers of a sorted tensor that was made from arrays or sorted anew: one value and
// one 32-bit index for each dimension. Puts may add an eighth.
// Example: 100 million floats of rank 3 take 1.6 * 10^9 bytes, at most 1.8 * 10^9 after puts.
constexpr Bytes coo_bytes(std::int64_t nnz, std::int64_t rank, std::int64_t bytes_per_value) {
  return Bytes(nnz * (bytes_per_value + 4 * rank));
}

// A sparse tensor of any rank, T = float or double: values[nnz] and flattened indices[nnz][rank],
// kept in lexicographic order. It is a handle: a copy and a view share buffers with the original,
// and each sees what the others put. clone() gives buffers of its own.
// Puts are collected and sorted in before the next read; so reading after a put writes. Many
// threads may read tensors that share buffers once settle() was called and while nobody puts.
// Every index argument has one number for each dimension; negative ones count from the end; one
// that lies outside is Error{InvalidArgument}. n is the number of entries in the buffers.
template <class T>
class CooTensor {
 public:
  using Value = T;

  // No entries. Error{InvalidArgument} for a dimension outside 0..2^31 - 1.
  explicit CooTensor(std::vector<std::int64_t> shape);
  // Entries in any order, zeros kept; indices is [nnz][rank]. Wrong lengths, an index outside the
  // shape and an entry that is given twice are Error{BadInput} that names the position. O(n) when
  // the entries ascend, else O(n * bits of an index / 8) and up to 32 bytes an entry meanwhile.
  CooTensor(std::vector<std::int64_t> shape, std::vector<std::int32_t> indices,
            std::vector<T> values);

  std::int64_t rank() const { return layout_.rank(); }
  std::vector<std::int64_t> shape() const { return layout_.shape(); }
  // How this view lies in the tensor that owns the buffers.
  const TensorLayout& layout() const { return layout_; }
  bool is_view() const { return is_view_; }

  // Entries that are seen. O(log n + entries between the first and the last that is seen).
  std::int64_t nnz() const;
  // Copies of what is seen, in order: [nnz][rank] and [nnz]. Cost as nnz().
  std::vector<std::int32_t> indices() const;
  std::vector<T> values() const;

  // The value at an index, zero where nothing is stored. O(rank * log n).
  T get(std::span<const std::int64_t> index) const;
  T get(std::initializer_list<std::int64_t> index) const { return get(as_span(index)); }
  // Position of an entry in the shared buffers, nothing where none is stored. O(rank * log n).
  std::optional<std::int64_t> find(std::span<const std::int64_t> index) const;
  std::optional<std::int64_t> find(std::initializer_list<std::int64_t> index) const {
    return find(as_span(index));
  }
  // Stores, overwrites, or with zero removes. Amortised O(rank * log n), without the sort that the
  // next read owes. A NaN is stored, -0 removes.
  void put(std::span<const std::int64_t> index, T value);
  void put(std::initializer_list<std::int64_t> index, T value) { put(as_span(index), value); }

  // A part of the tensor, one selector for each dimension and each new axis, All for dimensions
  // that are not reached. A view that shares the buffers, or, when any selector is Specified, a
  // copy. A point takes its dimension away, but at least two dimensions (or as many as there were)
  // stay, new axes counted: the first points then stay as dimensions of length 1.
  // Views cost O(rank); copies cost nnz(), times the repeats of an index, and a sort.
  // Example: of a 5 x 5 tensor, select({Point{2}}) is its row 2 and has shape 1 x 5.
  CooTensor select(const std::vector<Selector>& selectors) const;
  // What is seen, in buffers of its own, natural order.
  CooTensor clone() const;

  // From the next read on, the shared buffers are sorted by these dimensions of the underlying
  // tensor, the first one slowest; affects speed and the order of entries, nothing else.
  // Error{InvalidArgument} unless it names each dimension once. The sort is O(n * bits / 8).
  void sort_by(std::vector<std::int64_t> order);
  std::vector<std::int64_t> order() const;
  // Sorts now what would be sorted before the next read.
  void settle() const;
  bool is_settled() const;

  // Of the shared buffers, with unused capacity: at most 9/8 of coo_bytes and 16 entries more once
  // settled.
  Bytes bytes() const;

 private:
  friend struct internal::CooAccess<T>;
  CooTensor(std::shared_ptr<internal::CooStore<T>> store, TensorLayout layout, bool is_view);
  static std::span<const std::int64_t> as_span(std::initializer_list<std::int64_t> index) {
    return {index.begin(), index.size()};
  }

  std::shared_ptr<internal::CooStore<T>> store_;
  TensorLayout layout_;
  bool is_view_ = false;
};

// Same shape, same entries; what order they lie in and whether it is a view does not matter.
template <class T>
bool operator==(const CooTensor<T>& a, const CooTensor<T>& b);

// One line: "COO tensor 4 x 2 x 3, 9 entries".
template <class T>
std::ostream& operator<<(std::ostream& out, const CooTensor<T>& tensor);

}  // namespace tessera::arrays
