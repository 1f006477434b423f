#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/flat_ops.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/arrays/mapped/internal/mapped_store.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {
namespace {

// Returns true if the array shows every place of its storage.
template <class T>
bool shows_whole_storage(const MappedArray<T>& array) {
  return checked_elements(array.shape()) == checked_elements(array.mapping().storage_shape());
}

// Returns all values of a storage if they are stored one after the other, else nothing.
template <class T>
std::span<T> values_in_a_row(MappedStore<T>& store) {
  if (auto* flat = std::get_if<FlatCooStorage<T>>(&store.any)) return flat->values;
  if (auto* csr = std::get_if<sparse::Csr<T>>(&store.any)) return csr->values;
  return {};
}

template <class T>
bool ascends(const Flat<T>& flat) {
  return std::is_sorted(flat.entries.begin(), flat.entries.end(),
                        [](const auto& a, const auto& b) { return a.key < b.key; });
}

// Returns the mapping of a new storage of that kind.
Mapping default_mapping(const std::vector<std::int64_t>& shape, bool has_all_axes) {
  if (!has_all_axes || shape.empty()) return Mapping(shape);
  std::vector<std::int64_t> dimensions(shape.size()), cuts(shape.size() - 1);
  std::iota(dimensions.begin(), dimensions.end(), std::int64_t{0});
  std::iota(cuts.begin(), cuts.end(), std::int64_t{1});
  return Mapping(shape, dimensions, cuts);
}

}  // namespace

template <class T>
void for_runs(MappedArray<T>& array, Executor& executor, const Change<T>& change) {
  MappedStore<T>& store = *MappedAccess<T>::store(array);
  const std::span<T> values = values_in_a_row(store);
  if (!values.empty() && shows_whole_storage(array)) {
    for_chunks(std::ssize(values), executor, [&](std::int64_t begin, std::int64_t end) {
      change(values.subspan(std::size_t(begin), std::size_t(end - begin)));
    });
    return;
  }
  std::vector<T*> places;
  std::vector<T> gathered;
  walk_stored<T>(store, array.mapping(), [&](std::span<const std::int64_t>, T& value) {
    places.push_back(&value);
    gathered.push_back(value);
  });
  for_chunks(std::ssize(gathered), executor, [&](std::int64_t begin, std::int64_t end) {
    change({gathered.data() + begin, std::size_t(end - begin)});
  });
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = gathered[i];
}

template <class T>
void store_all(MappedArray<T>& array, const std::vector<T>& values) {
  array.assign(DenseArray<T>{array.shape(), values}, Missing::Insert);
}

template <class T>
Flat<T> flat_of(const MappedArray<T>& array, Executor& executor) {
  if (!array.unspecified() && !array.is_full())
    throw Error(ErrorCode::InvalidArgument,
                "elements of a mapped array that are not stored have no value, but the operation "
                "needs one; see with_unspecified");
  Flat<T> flat{Fields(array.shape()), {}, array.unspecified().value_or(T(0))};
  walk_stored<T>(*MappedAccess<T>::store(array), array.mapping(),
                 [&](std::span<const std::int64_t> index, T& value) {
                   std::uint64_t key = 0;
                   for (std::size_t d = 0; d < index.size(); ++d)
                     key |= flat.fields.field(d, index[d]);
                   flat.entries.push_back({key, value});
                 });
  if (!ascends(flat)) sort_entries(flat.entries, 0, flat.fields.bits(), executor);
  return flat;
}

template <class T>
MappedArray<T> stored_like(const MappedArray<T>& like, Flat<T> flat, const std::string& what,
                           Executor& executor) {
  const T rest = flat.rest;
  const std::vector<std::int64_t> shape = flat.fields.shape();
  const auto& store = MappedAccess<T>::store(like)->any;
  if (std::holds_alternative<StridedStorage<T>>(store)) {
    const Mapping mapping(shape);
    std::vector<std::int64_t> strides(mapping.storage_shape().size(), 1);
    if (strides.size() == 2) strides[0] = mapping.storage_shape()[1];
    return MappedArray<T>(mapping, StridedStorage<T>{Buffer<T>(dense_values(flat, executor)),
                                                     mapping.storage_shape(), std::move(strides)})
        .with_unspecified(rest);
  }
  flat.rest = T(0);  // unspecified() of the result stands for it
  const bool is_csr = std::holds_alternative<sparse::Csr<T>>(store) && shape.size() >= 2;
  const bool is_coo = std::holds_alternative<CooTensor<T>>(store);
  const MappedKind kind = is_csr ? MappedKind::Csr : is_coo ? MappedKind::Coo : MappedKind::FlatCoo;
  return to_mapped(tensor_of(std::move(flat), what, executor), default_mapping(shape, is_coo), kind)
      .with_unspecified(rest);
}

#define TESSERA_INSTANTIATE_STORAGE(T)                                                    \
  template void for_runs(MappedArray<T>&, Executor&, const Change<T>&);                   \
  template void store_all(MappedArray<T>&, const std::vector<T>&);                        \
  template Flat<T> flat_of(const MappedArray<T>&, Executor&);                             \
  template MappedArray<T> stored_like(const MappedArray<T>&, Flat<T>, const std::string&, \
                                      Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_STORAGE)

#undef TESSERA_INSTANTIATE_STORAGE

}  // namespace tessera::arrays::internal
