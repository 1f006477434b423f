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

// Every element, at the sum of index times stride in a buffer. Strides may be negative, see Buffer.
template <class T>
struct StridedStorage {
  Buffer<T> values;
  std::vector<std::int64_t> shape, strides;  // strides in elements
};

// Entries by their row-major position, ascending strictly.
template <class T>
struct FlatCooStorage {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> positions;  // [entries]
  std::vector<T> values;                // [entries]
};

namespace internal {
template <class T>
struct MappedStore;
}  // namespace internal

// An array of any rank in a storage of fewer axes, T = float or double: a Mapping and a storage. It
// is a handle: copies, slices and swapped axes share the storage, which never changes here.
// Elements that a storage does not hold have the value `unspecified`, which may be nothing at all.
// Any number of threads may read one array whose tensor, if that is its storage, is settled.
// Every constructor checks its storage: one of another shape than the mapping's is
// Error{InvalidArgument}, an illegal one Error{BadInput}.
template <class T>
class MappedArray {
 public:
  MappedArray(Mapping mapping, StridedStorage<T> storage);
  MappedArray(Mapping mapping, CooTensor<T> storage);
  MappedArray(Mapping mapping, FlatCooStorage<T> storage);
  MappedArray(Mapping mapping, sparse::Csr<T> storage);  // an element matrix
  MappedArray(Mapping mapping, const MappedArray& storage);

  const Mapping& mapping() const { return mapping_; }
  std::int64_t rank() const { return mapping_.rank(); }
  const std::vector<std::int64_t>& shape() const { return mapping_.shape(); }
  // The storage, when it is of that kind, else null. S is one of the five above.
  template <class S>
  const S* storage() const;
  bool shares_storage_with(const MappedArray& other) const { return store_ == other.store_; }

  // What get() answers where nothing is stored; zero at first.
  std::optional<T> unspecified() const { return unspecified_; }
  MappedArray with_unspecified(std::optional<T> value) const;

  // Negative numbers count from the end; outside is Error{InvalidArgument}. O(rank), and the lookup
  // of the storage: O(1) strided, O(log) else.
  std::optional<T> get(std::span<const std::int64_t> index) const;
  std::optional<T> get(std::initializer_list<std::int64_t> index) const {
    return get({index.begin(), index.size()});
  }
  // The same without `unspecified`: nothing where nothing is stored.
  std::optional<T> find(std::span<const std::int64_t> index) const;

  // see(index, value) for every stored element that is shown, in storage order (strided: row-major
  // in the array). O(stored * rank), for a strided storage O(elements).
  using See = std::function<void(std::span<const std::int64_t>, T)>;
  void visit(const See& see) const;
  std::int64_t specified() const;  // how many visit() shows
  bool is_full() const;            // every element is stored

  // No copies; O(rank).
  MappedArray select(const std::vector<AxisSelector>& selectors) const;
  MappedArray swapped(std::int64_t a, std::int64_t b) const;

  std::string storage_name() const;  // "strided", "coo", "flat coo", "csr", "mapped array"
  // Same mapping, same kind of storage with the same entries, same `unspecified`.
  friend bool operator==(const MappedArray& a, const MappedArray& b) { return a.is_same(b); }

 private:
  bool is_same(const MappedArray& other) const;
  MappedArray(Mapping mapping, std::shared_ptr<const internal::MappedStore<T>> store);

  Mapping mapping_;
  std::shared_ptr<const internal::MappedStore<T>> store_;
  std::optional<T> unspecified_ = T(0);
};

// Same shape and the same answer of get() everywhere, whatever the storage. O(visit and lookups).
template <class T>
bool equal(const MappedArray<T>& a, const MappedArray<T>& b);

// The storage under a mapped array.
enum class MappedKind { Strided, Coo, FlatCoo, Csr };

// The entries of a tensor, or the elements of a dense array, in a new storage of that kind. The
// mapping must be of that shape; Csr needs two storage axes, else Error{InvalidArgument}. Sparse
// kinds leave zeros of the dense array out. A strided storage holds zeros where the tensor has
// nothing. O(entries), and a sort.
template <class T>
MappedArray<T> to_mapped(const CooTensor<T>& tensor, const Mapping& mapping, MappedKind kind);
template <class T>
MappedArray<T> to_mapped(const DenseArray<T>& array, const Mapping& mapping, MappedKind kind);

// What is stored, as a tensor; as an element matrix for rank two, else Error{InvalidArgument}; as a
// dense array, Error{InvalidArgument} when an element has no value. O(visit), and a sort.
template <class T>
CooTensor<T> to_tensor(const MappedArray<T>& array);
template <class T>
sparse::Csr<T> to_csr(const MappedArray<T>& array);
template <class T>
DenseArray<T> to_dense(const MappedArray<T>& array);

// One line: "mapped array 2 x 3 x 4 in csr 6 x 4, 9 stored".
template <class T>
std::ostream& operator<<(std::ostream& out, const MappedArray<T>& array);

}  // namespace tessera::arrays
