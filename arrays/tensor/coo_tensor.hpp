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

// Returns the bytes of the buffers of a tensor that was made from arrays or has been sorted again:
// per entry one value and one 32-bit index for each dimension. Puts may add an eighth.
// Example: 100 million floats of rank 3 take 1.6 * 10^9 bytes, at most 1.8 * 10^9 after puts.
constexpr Bytes coo_bytes(std::int64_t nnz, std::int64_t rank, std::int64_t bytes_per_value) {
  return Bytes(nnz * (bytes_per_value + 4 * rank));
}

// A sparse tensor of any rank, T any type of ops/element.hpp: values[nnz] and flattened
// indices[nnz][rank], kept in lexicographic order. The object is a handle: copies and views share
// the buffers of the original, and each sees the puts of the others. clone() makes separate
// buffers. Puts are collected and merged before the next read, so a read after a put writes to the
// buffers. Several threads may read tensors that share buffers after a call of settle() and while
// no thread puts. Every index argument has one number for each dimension; negative numbers count
// from the end; an index outside the tensor is Error{InvalidArgument}. In costs, n is the number of
// entries in the buffers.
template <class T>
class CooTensor {
 public:
  using Value = T;

  // Makes a tensor without entries. Throws Error{InvalidArgument} for a dimension outside
  // 0..2^31 - 1.
  explicit CooTensor(std::vector<std::int64_t> shape);

  // Makes a tensor from entries in any order; indices is [nnz][rank], and zeros are kept. Throws
  // Error{BadInput}, which names the position, for wrong lengths, an index outside the shape and an
  // entry that is given twice. O(n) if the entries ascend, else O(n * bits of an index / 8) with up
  // to 32 bytes per entry during the sort.
  CooTensor(std::vector<std::int64_t> shape, std::vector<std::int32_t> indices,
            std::vector<T> values);

  std::int64_t rank() const { return layout_.rank(); }
  std::vector<std::int64_t> shape() const { return layout_.shape(); }

  // Returns the mapping of this view to the tensor that owns the buffers.
  const TensorLayout& layout() const { return layout_; }

  bool is_view() const { return is_view_; }

  // Returns the number of entries in the view. O(log n + entries between the first and the last
  // one in the view).
  std::int64_t nnz() const;

  // Return copies of the entries in the view, in order: [nnz][rank] and [nnz]. Cost as nnz().
  std::vector<std::int32_t> indices() const;
  std::vector<T> values() const;

  // Returns the value at an index, or zero if nothing is stored there. O(rank * log n).
  T get(std::span<const std::int64_t> index) const;
  T get(std::initializer_list<std::int64_t> index) const { return get(as_span(index)); }

  // Returns the position of an entry in the shared buffers, or nothing if none is stored.
  // O(rank * log n).
  std::optional<std::int64_t> find(std::span<const std::int64_t> index) const;
  std::optional<std::int64_t> find(std::initializer_list<std::int64_t> index) const {
    return find(as_span(index));
  }

  // Stores or overwrites the value at an index, or removes the entry if the value is zero (-0 too).
  // A NaN is stored. Amortised O(rank * log n), without the sort that the next read makes.
  void put(std::span<const std::int64_t> index, T value);
  void put(std::initializer_list<std::int64_t> index, T value) { put(as_span(index), value); }

  // Returns a part of the tensor. There is one selector for each dimension and each new axis;
  // dimensions beyond the list are selected by All. The result is a view that shares the buffers
  // or, if any selector is Specified, a copy. A point removes its dimension, but at least two
  // dimensions (or as many as there were) are kept, new axes included: if there would be fewer, the
  // first points stay as dimensions of length 1.
  // A view costs O(rank); a copy costs nnz(), times the repeats of an index, and a sort.
  // Example: of a 5 x 5 tensor, select({Point{2}}) is its row 2 and has shape 1 x 5.
  CooTensor select(const std::vector<Selector>& selectors) const;

  // Returns the entries of the view in separate buffers, in natural order.
  CooTensor clone() const;

  // Makes the next read sort the shared buffers by these dimensions of the underlying tensor, the
  // first one slowest. The order affects only speed and the order of entries. Throws
  // Error{InvalidArgument} unless each dimension is named once. The sort costs O(n * bits / 8).
  void sort_by(std::vector<std::int64_t> order);
  std::vector<std::int64_t> order() const;

  // Merges and sorts at once, in place of the next read.
  void settle() const;
  bool is_settled() const;

  // Returns the bytes of the shared buffers, including unused capacity: once settled, at most 9/8
  // of coo_bytes and 16 entries more.
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

// Returns true if shapes and entries are equal. The order of the buffers, and whether one of the
// tensors is a view, do not matter.
template <class T>
bool operator==(const CooTensor<T>& a, const CooTensor<T>& b);

// Writes a summary of one line, for example "COO tensor 4 x 2 x 3, 9 entries".
template <class T>
std::ostream& operator<<(std::ostream& out, const CooTensor<T>& tensor);

}  // namespace tessera::arrays
