#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tessera/arrays/mapped/mapped_array.hpp"

namespace tessera::arrays::internal {

// What a mapped array may lie in.
template <class T>
struct MappedStore {
  std::variant<StridedStorage<T>, CooTensor<T>, FlatCooStorage<T>, sparse::Csr<T>, MappedArray<T>>
      any;
};

// For every storage: its shape, what is wrong with it (an Error), its name, the value at a place if
// it is stored, and whether two hold the same.
template <class T>
std::vector<std::int64_t> storage_shape(const MappedStore<T>& store);
template <class T>
void check_storage(const MappedStore<T>& store);
template <class T>
std::string storage_name(const MappedStore<T>& store);
template <class T>
std::optional<T> find_stored(const MappedStore<T>& store, std::span<const std::int64_t> place);
template <class T>
bool same_storage(const MappedStore<T>& a, const MappedStore<T>& b);

// see(index, value) for what `mapping` shows of a storage.
template <class T>
void visit_stored(const MappedStore<T>& store, const Mapping& mapping,
                  const typename MappedArray<T>::See& see);

}  // namespace tessera::arrays::internal
