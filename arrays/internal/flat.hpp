#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays::internal {

// The number of entries that one call of a loop handles. It does not depend on the number of
// threads, and neither do the bits of a result.
inline constexpr std::int64_t kChunk = 1 << 15;

// Calls body(begin, end) for each chunk of [0, count).
template <class Body>
void for_chunks(std::int64_t count, Executor& executor, Body&& body) {
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  executor.for_each(chunks, [&](std::int64_t c) {
    body(c * kChunk, c + 1 == chunks ? count : (c + 1) * kChunk);
  });
}

// An allocator that leaves new elements uninitialised, for memory that is written at once.
template <class E>
struct RawAllocator : LineAllocator<E> {
  template <class U>
  struct rebind {
    using other = RawAllocator<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};
template <class E>
using RawVector = std::vector<E, RawAllocator<E>>;

// The fields of a key: one number for an index of any rank. Each dimension has a field of as many
// bits as its largest index needs, the first dimension in the uppermost bits, so keys are ordered
// as indices are. Throws Error{LimitExceeded} if the fields need more than 64 bits.
class Fields {
 public:
  Fields() = default;
  explicit Fields(std::vector<std::int64_t> shape);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  int bits() const { return bits_; }
  int bits(std::size_t dim) const { return field_bits_[dim]; }
  int shift(std::size_t dim) const { return shifts_[dim]; }

  std::int64_t index(std::uint64_t key, std::size_t dim) const {
    return static_cast<std::int64_t>((key >> shifts_[dim]) & masks_[dim]);
  }
  std::uint64_t field(std::size_t dim, std::int64_t index) const {
    return static_cast<std::uint64_t>(index) << shifts_[dim];
  }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<int> field_bits_, shifts_;
  std::vector<std::uint64_t> masks_;
  int bits_ = 0;
};

// The key of some dimensions of a shape, in any order, computed from the key of all. Places that a
// dimension of length 1 takes have no bits.
class Repack {
 public:
  // Field i of the new key is dimension dims[i] of `from`.
  Repack(const Fields& from, std::span<const std::int64_t> dims, const Fields& to);

  std::uint64_t operator()(std::uint64_t key) const {
    std::uint64_t result = 0;
    for (const Move& move : moves_) result |= ((key >> move.from) & move.mask) << move.to;
    return result;
  }

 private:
  struct Move {
    int from, to;
    std::uint64_t mask;
  };
  std::vector<Move> moves_;
};

template <class T>
struct FlatEntry {
  std::uint64_t key;
  T value;
};

// The form in which every storage takes part in operations: the stored elements by ascending key,
// and the value of all other elements.
template <class T>
struct Flat {
  Fields fields;
  RawVector<FlatEntry<T>> entries;
  T rest = T(0);

  std::int64_t count() const { return static_cast<std::int64_t>(entries.size()); }
};

// Returns the shape with the dimensions in another order.
std::vector<std::int64_t> chosen(std::span<const std::int64_t> shape,
                                 std::span<const std::int64_t> dims);

// Returns the number of dimensions at the front of `order` by which entries in natural order must
// be sorted, stably, to be in the order of all of them. Example: 0 for 0 1 2, 1 for 2 0 1, 2 for
// 2 1 0.
std::size_t dims_to_sort(std::span<const std::int64_t> order);

}  // namespace tessera::arrays::internal
