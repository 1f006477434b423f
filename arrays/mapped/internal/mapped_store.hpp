#pragma once

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

// Returns the value at a place, or nothing if none is stored there.
template <class T>
std::optional<T> find_stored(const MappedStore<T>& store, std::span<const std::int64_t> place);

// Returns true if two storages are of one kind and have equal entries.
template <class T>
bool same_storage(const MappedStore<T>& a, const MappedStore<T>& b);

// Calls see(index, value) for every stored element that `mapping` maps to an index of the array.
template <class T>
void visit_stored(const MappedStore<T>& store, const Mapping& mapping,
                  const typename MappedArray<T>::See& see);

}  // namespace tessera::arrays::internal
