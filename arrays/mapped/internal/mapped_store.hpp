#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"

namespace tessera::arrays::internal {

// The storage of a mapped array, of any of the five kinds.
template <class T>
struct MappedStore {
  std::variant<StridedStorage<T>, CooTensor<T>, FlatCooStorage<T>, sparse::Csr<T>, MappedArray<T>>
      any;
};

// Returns the shape of a storage.
template <class T>
std::vector<std::int64_t> storage_shape(const MappedStore<T>& store);

// Throws Error{BadInput} if the storage is illegal.
template <class T>
void check_storage(const MappedStore<T>& store);

// Returns the name that MappedArray::storage_name returns.
template <class T>
std::string storage_name(const MappedStore<T>& store);

// Returns the address of the value at a place, or null if none is stored there. It is valid until
// the next insertion.
template <class T>
T* find_stored(MappedStore<T>& store, std::span<const std::int64_t> place);

// Elements that are to be inserted: places [count][rank] and values [count].
template <class T>
struct Insertions {
  std::vector<std::int64_t> places;
  std::vector<T> values;
};

// Stores elements at places where nothing is stored. Of several at one place the last one counts.
template <class T>
void insert_stored(MappedStore<T>& store, const Insertions<T>& insertions);

// Returns true if two storages are of one kind and have equal entries.
template <class T>
bool same_storage(const MappedStore<T>& a, const MappedStore<T>& b);

// Calls see(index, value) for every stored element that `mapping` maps to an index of the array;
// `see` may change the value.
template <class T>
using Walk = std::function<void(std::span<const std::int64_t>, T&)>;
template <class T>
void walk_stored(MappedStore<T>& store, const Mapping& mapping, const Walk<T>& see);

// Access to the storage of a mapped array for the sources of this folder.
template <class T>
struct MappedAccess {
  static const std::shared_ptr<MappedStore<T>>& store(const MappedArray<T>& array) {
    return array.store_;
  }
};

}  // namespace tessera::arrays::internal
