#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/arrays/mapped/buffer.hpp"
#include "tessera/arrays/mapped/mapping.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::arrays {

// A storage of every element: an element is at the sum of index times stride in a buffer. Strides
// may be negative (see Buffer).
template <class T>
struct StridedStorage {
  Buffer<T> values;
  std::vector<std::int64_t> shape, strides;  // strides in elements
};

// A storage of some elements by their row-major positions, which ascend strictly.
template <class T>
struct FlatCooStorage {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> positions;  // [entries]
  std::vector<T> values;                // [entries]
};

namespace internal {
template <class T>
struct MappedStore;
template <class T>
struct MappedAccess;
}  // namespace internal

// The treatment of an element that is written and that the storage does not have.
enum class Missing {
  Refuse,  // Error{InvalidArgument}, which names the first such index; nothing is written
  Insert   // the element becomes stored
};

// An array of any rank in a storage of fewer axes, T any type of ops/element.hpp: a Mapping and a
// storage. The object is a handle: copies, slices and arrays with swapped axes share the storage,
// and each sees the changes of the others. Elements that are not stored have the value
// unspecified(), which may be nothing. Any number of threads may read one array; if its storage is
// a tensor, the tensor must be settled; nobody may write at the same time. Every constructor checks
// its storage: a shape other than the mapping's is Error{InvalidArgument}, and an illegal storage
// is Error{BadInput}.
template <class T>
class MappedArray {
 public:
  using Value = T;

  MappedArray(Mapping mapping, StridedStorage<T> storage);
  MappedArray(Mapping mapping, CooTensor<T> storage);
  MappedArray(Mapping mapping, FlatCooStorage<T> storage);
  MappedArray(Mapping mapping, sparse::Csr<T> storage);  // an element matrix
  MappedArray(Mapping mapping, const MappedArray& storage);

  const Mapping& mapping() const { return mapping_; }
  std::int64_t rank() const { return mapping_.rank(); }
  const std::vector<std::int64_t>& shape() const { return mapping_.shape(); }

  // Returns the storage if it is of type S, else null. S is one of the five types above.
  template <class S>
  const S* storage() const;
  bool shares_storage_with(const MappedArray& other) const { return store_ == other.store_; }

  // The value that get() returns where nothing is stored. It is zero unless with_unspecified set
  // another one.
  std::optional<T> unspecified() const { return unspecified_; }
  MappedArray with_unspecified(std::optional<T> value) const;

  // Returns the value at an index, or unspecified() if nothing is stored there. Negative numbers
  // count from the end; an index outside the array is Error{InvalidArgument}. O(rank), and the
  // lookup in the storage: O(1) if it is strided, else O(log).
  std::optional<T> get(std::span<const std::int64_t> index) const;
  std::optional<T> get(std::initializer_list<std::int64_t> index) const {
    return get({index.begin(), index.size()});
  }

  // Returns the same, except that it returns nothing if nothing is stored.
  std::optional<T> find(std::span<const std::int64_t> index) const;

  // Writes one element. All arrays that share the storage see it. A zero is stored like any other
  // value. Overwriting costs as much as get(); an insertion O(stored) for a flat COO or CSR, and an
  // amortised O(log) for a tensor.
  void put(std::span<const std::int64_t> index, T value, Missing missing = Missing::Refuse);
  void put(std::initializer_list<std::int64_t> index, T value, Missing missing = Missing::Refuse) {
    put({index.begin(), index.size()}, value, missing);
  }

  // Write every element of this array, which usually is a slice of another one: one value for all,
  // or the elements of an array of the same shape. Elements that are to be inserted are collected
  // and merged at once. O(elements * lookup), and O(stored) for insertions.
  // Example: a.select({Slice{0, 2}}).assign(1) sets the first two rows to 1.
  void assign(T value, Missing missing = Missing::Refuse);
  void assign(const DenseArray<T>& values, Missing missing = Missing::Refuse);

  // Calls see(index, value) for every stored element of the array, in storage order (for a strided
  // storage: row-major in the array). O(stored * rank), for a strided storage O(elements).
  using See = std::function<void(std::span<const std::int64_t>, T)>;
  void visit(const See& see) const;

  std::int64_t specified() const;  // number of elements that visit() shows
  bool is_full() const;            // true if every element is stored

  // Return a part of the array, and the array with two axes exchanged. They copy nothing; O(rank).
  MappedArray select(const std::vector<AxisSelector>& selectors) const;
  MappedArray swapped(std::int64_t a, std::int64_t b) const;

  // Returns "strided", "coo", "flat coo", "csr" or "mapped array".
  std::string storage_name() const;

  // Returns true if the mappings are equal, the storages are of one kind with equal entries, and
  // the values of unspecified() are equal.
  friend bool operator==(const MappedArray& a, const MappedArray& b) { return a.is_same(b); }

 private:
  friend struct internal::MappedAccess<T>;
  template <class ValueAt>
  void write(const ValueAt& value_at, Missing missing);
  bool is_same(const MappedArray& other) const;
  MappedArray(Mapping mapping, std::shared_ptr<internal::MappedStore<T>> store);

  Mapping mapping_;
  std::shared_ptr<internal::MappedStore<T>> store_;
  std::optional<T> unspecified_ = T(0);
};

// Returns true if shapes are equal and get() returns equal values everywhere, for any storages.
// The cost is a visit() and a lookup of each element.
template <class T>
bool equal(const MappedArray<T>& a, const MappedArray<T>& b);

// The kind of storage that to_mapped makes.
enum class MappedKind { Strided, Coo, FlatCoo, Csr };

// Return the entries of a tensor, or the elements of a dense array, in a new storage of that kind.
// Throw Error{InvalidArgument} if the mapping has another shape, or if a Csr does not get exactly
// two storage axes. Sparse kinds leave out the zeros of a dense array; a strided storage has zeros
// where the tensor has no entry. O(entries), and a sort.
template <class T>
MappedArray<T> to_mapped(const CooTensor<T>& tensor, const Mapping& mapping, MappedKind kind);
template <class T>
MappedArray<T> to_mapped(const DenseArray<T>& array, const Mapping& mapping, MappedKind kind);

// Return the stored elements as a tensor, as an element matrix (rank two only, else
// Error{InvalidArgument}), or as a dense array (Error{InvalidArgument} if an element has no value).
// The cost is a visit() and a sort.
template <class T>
CooTensor<T> to_tensor(const MappedArray<T>& array);
template <class T>
sparse::Csr<T> to_csr(const MappedArray<T>& array);
template <class T>
DenseArray<T> to_dense(const MappedArray<T>& array);

// Writes a summary of one line, for example "mapped array 2 x 3 x 4 in csr 6 x 4, 9 stored".
template <class T>
std::ostream& operator<<(std::ostream& out, const MappedArray<T>& array);

}  // namespace tessera::arrays
