#include "tessera/arrays/mapped/internal/mapped_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays::internal {
namespace {

using Indices = std::vector<std::int64_t>;
using Place = std::span<const std::int64_t>;

[[noreturn]] void bad_input(const std::string& message) {
  throw Error(ErrorCode::BadInput, message);
}

template <class T>
std::int64_t position(const StridedStorage<T>& storage, Place place) {
  std::int64_t at = 0;
  for (std::size_t k = 0; k < place.size(); ++k) at += place[k] * storage.strides[k];
  return at;
}

std::int64_t flat_position(const Indices& shape, Place place) {
  std::int64_t at = 0;
  for (std::size_t k = 0; k < place.size(); ++k) at = at * shape[k] + place[k];
  return at;
}

template <class T>
void check_one(const StridedStorage<T>& storage) {
  const std::int64_t elements = checked_elements(storage.shape);
  if (storage.strides.size() != storage.shape.size())
    bad_input(fmt::format("strided storage: {} strides for {} dimensions", storage.strides.size(),
                          storage.shape.size()));
  if (elements == 0) return;
  std::int64_t least = 0, most = 0;
  for (std::size_t k = 0; k < storage.shape.size(); ++k) {
    const std::int64_t reach =
        checked_mul(storage.strides[k], storage.shape[k] - 1, "reach of a strided storage");
    std::int64_t& end = reach < 0 ? least : most;
    end = checked_add(end, reach, "reach of a strided storage");
  }
  try {
    storage.values.at(least), storage.values.at(most);
  } catch (const Error& error) {
    bad_input(fmt::format("strided storage of {} reaches outside its buffer: {}",
                          shape_text(storage.shape), error.what()));
  }
}

template <class T>
void check_one(const FlatCooStorage<T>& storage) {
  const std::int64_t elements = checked_elements(storage.shape);
  if (storage.positions.size() != storage.values.size())
    bad_input(fmt::format("flat COO storage: {} positions and {} values; each value needs one",
                          storage.positions.size(), storage.values.size()));
  for (std::size_t i = 0; i < storage.positions.size(); ++i) {
    const std::int64_t at = storage.positions[i];
    if (at < 0 || at >= elements)
      bad_input(fmt::format("flat COO storage: positions[{}] is {}; the shape {} has {} elements",
                            i, at, shape_text(storage.shape), elements));
    if (i > 0 && at <= storage.positions[i - 1])
      bad_input(
          fmt::format("flat COO storage: positions[{}] is {} and stands after {}; they must "
                      "ascend strictly",
                      i, at, storage.positions[i - 1]));
  }
}

template <class T>
void check_one(const sparse::Csr<T>& storage) {
  require_elements(storage);
}
// Tensors and mapped arrays are always legal, because their constructors check them.
template <class T>
void check_one(const CooTensor<T>&) {}
template <class T>
void check_one(const MappedArray<T>&) {}

template <class T>
T* find_one(StridedStorage<T>& storage, Place place) {
  return &storage.values.reference(position(storage, place));
}
template <class T>
T* find_one(CooTensor<T>& storage, Place place) {
  return value_place(storage, place);
}
template <class T>
T* find_one(FlatCooStorage<T>& storage, Place place) {
  const std::int64_t wanted = flat_position(storage.shape, place);
  const auto at = std::ranges::lower_bound(storage.positions, wanted);
  if (at == storage.positions.end() || *at != wanted) return nullptr;
  return &storage.values[std::size_t(at - storage.positions.begin())];
}
template <class T>
T* find_one(sparse::Csr<T>& storage, Place place) {
  const auto first = storage.col.begin() + storage.row_begin[place[0]];
  const auto last = storage.col.begin() + storage.row_begin[place[0] + 1];
  const auto at = std::lower_bound(first, last, place[1]);
  if (at == last || *at != place[1]) return nullptr;
  return &storage.values[std::size_t(at - storage.col.begin())];
}
template <class T>
T* find_one(MappedArray<T>& storage, Place place) {
  return find_stored(*MappedAccess<T>::store(storage), storage.mapping().reduce(place));
}

// The functions insert_one store elements at places that have none.
template <class T>
void insert_one(StridedStorage<T>&, const Insertions<T>&) {}  // it has all places

template <class T>
void insert_one(CooTensor<T>& storage, const Insertions<T>& insertions) {
  const std::size_t rank = std::size_t(storage.rank());
  const auto place = [&](std::size_t i) {
    return Place(insertions.places).subspan(i * rank, rank);
  };
  for (std::size_t i = 0; i < insertions.values.size(); ++i) storage.put(place(i), T(1));
  // put() would remove an entry that becomes zero.
  for (std::size_t i = 0; i < insertions.values.size(); ++i)
    *value_place(storage, place(i)) = insertions.values[i];
}

// Merges positions that ascend with new ones in any order. Of several values at one position the
// last one is kept.
template <class Position, class T>
void merge_in(std::vector<Position>& positions, std::vector<T>& values,
              std::vector<std::pair<Position, T>> added) {
  std::stable_sort(added.begin(), added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Position> merged;
  std::vector<T> merged_values;
  std::size_t old = 0;
  const auto append = [&](const Position& at, T value) {
    merged.push_back(at);
    merged_values.push_back(value);
  };
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (i + 1 < added.size() && added[i + 1].first == added[i].first) continue;
    for (; old < positions.size() && positions[old] < added[i].first; ++old)
      append(positions[old], values[old]);
    append(added[i].first, added[i].second);
  }
  for (; old < positions.size(); ++old) append(positions[old], values[old]);
  positions = std::move(merged);
  values = std::move(merged_values);
}

template <class T>
void insert_one(FlatCooStorage<T>& storage, const Insertions<T>& insertions) {
  const std::size_t rank = storage.shape.size();
  std::vector<std::pair<std::int64_t, T>> added;
  for (std::size_t i = 0; i < insertions.values.size(); ++i)
    added.emplace_back(
        flat_position(storage.shape, Place(insertions.places).subspan(i * rank, rank)),
        insertions.values[i]);
  merge_in(storage.positions, storage.values, std::move(added));
}

template <class T>
void insert_one(sparse::Csr<T>& storage, const Insertions<T>& insertions) {
  using RowCol = std::pair<std::int64_t, std::int64_t>;
  std::vector<RowCol> positions;
  for (std::int64_t r = 0; r < storage.rows; ++r)
    for (std::int64_t k = storage.row_begin[r]; k < storage.row_begin[r + 1]; ++k)
      positions.emplace_back(r, storage.col[k]);
  std::vector<std::pair<RowCol, T>> added;
  for (std::size_t i = 0; i < insertions.values.size(); ++i)
    added.emplace_back(RowCol(insertions.places[2 * i], insertions.places[2 * i + 1]),
                       insertions.values[i]);
  merge_in(positions, storage.values, std::move(added));
  storage.col.clear();
  std::ranges::fill(storage.row_begin, std::int64_t{0});
  for (const RowCol& at : positions) {
    storage.col.push_back(static_cast<std::int32_t>(at.second));
    ++storage.row_begin[std::size_t(at.first) + 1];
  }
  for (std::size_t r = 1; r < storage.row_begin.size(); ++r)
    storage.row_begin[r] += storage.row_begin[r - 1];
}

template <class T>
void insert_one(MappedArray<T>& storage, const Insertions<T>& insertions) {
  Insertions<T> inner{{}, insertions.values};
  const std::size_t rank = std::size_t(storage.rank());
  for (std::size_t i = 0; i < insertions.values.size(); ++i) {
    const Indices place =
        storage.mapping().reduce(Place(insertions.places).subspan(i * rank, rank));
    inner.places.insert(inner.places.end(), place.begin(), place.end());
  }
  insert_stored(*MappedAccess<T>::store(storage), inner);
}

// The functions walk_one call see(index, value&) for every stored element that the mapping shows.
template <class T, class S>
void walk_one(StridedStorage<T>& storage, const Mapping& mapping, S&& see) {
  for_each_index(mapping.shape(), [&](Place index) {
    see(index, storage.values.reference(position(storage, mapping.reduce(index))));
  });
}

template <class T, class S>
void show(const Mapping& mapping, Place place, T& value, S&& see) {
  if (const auto index = mapping.promote(place)) see(Place(*index), value);
}

template <class T, class S>
void walk_one(CooTensor<T>& storage, const Mapping& mapping, S&& see) {
  const std::vector<std::int32_t> indices = storage.indices();
  const std::vector<T*> values = value_places(storage);
  const std::size_t rank = std::size_t(storage.rank());
  Indices place(rank);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::copy_n(indices.begin() + std::ptrdiff_t(i * rank), rank, place.begin());
    show(mapping, place, *values[i], see);
  }
}

template <class T, class S>
void walk_one(FlatCooStorage<T>& storage, const Mapping& mapping, S&& see) {
  Indices place(storage.shape.size());
  for (std::size_t i = 0; i < storage.positions.size(); ++i) {
    std::int64_t at = storage.positions[i];
    for (std::size_t k = place.size(); k-- > 0; at /= storage.shape[k])
      place[k] = at % storage.shape[k];
    show(mapping, place, storage.values[i], see);
  }
}

// Skips rows that the mapping does not show.
template <class T, class S>
void walk_one(sparse::Csr<T>& storage, const Mapping& mapping, S&& see) {
  Indices index(std::size_t(mapping.rank()));
  for (std::int64_t r = 0; r < storage.rows; ++r) {
    if (storage.row_begin[r] == storage.row_begin[r + 1] || !mapping.promote_axis(0, r, index))
      continue;
    for (std::int64_t k = storage.row_begin[r]; k < storage.row_begin[r + 1]; ++k)
      if (mapping.promote_axis(1, storage.col[k], index)) see(Place(index), storage.values[k]);
  }
}

template <class T, class S>
void walk_one(MappedArray<T>& storage, const Mapping& mapping, S&& see) {
  const Walk<T> show_one = [&](Place place, T& value) { show(mapping, place, value, see); };
  walk_stored<T>(*MappedAccess<T>::store(storage), storage.mapping(), show_one);
}

template <class T>
bool same_one(const StridedStorage<T>& a, const StridedStorage<T>& b) {
  bool same = a.shape == b.shape;
  if (same)
    for_each_index(a.shape, [&](Place i) {
      same = same && a.values.at(position(a, i)) == b.values.at(position(b, i));
    });
  return same;
}
template <class T>
bool same_one(const FlatCooStorage<T>& a, const FlatCooStorage<T>& b) {
  return a.shape == b.shape && a.positions == b.positions && a.values == b.values;
}
template <class S>
bool same_one(const S& a, const S& b) {
  return a == b;
}

}  // namespace

template <class T>
std::vector<std::int64_t> storage_shape(const MappedStore<T>& store) {
  if (const auto* strided = std::get_if<StridedStorage<T>>(&store.any)) return strided->shape;
  if (const auto* tensor = std::get_if<CooTensor<T>>(&store.any)) return tensor->shape();
  if (const auto* flat = std::get_if<FlatCooStorage<T>>(&store.any)) return flat->shape;
  if (const auto* csr = std::get_if<sparse::Csr<T>>(&store.any)) return {csr->rows, csr->cols};
  return std::get<MappedArray<T>>(store.any).shape();
}

template <class T>
void check_storage(const MappedStore<T>& store) {
  std::visit([](const auto& storage) { check_one(storage); }, store.any);
}

template <class T>
std::string storage_name(const MappedStore<T>& store) {
  static constexpr const char* kNames[] = {"strided", "coo", "flat coo", "csr", "mapped array"};
  return kNames[store.any.index()];
}

template <class T>
T* find_stored(MappedStore<T>& store, Place place) {
  return std::visit([place](auto& storage) { return find_one(storage, place); }, store.any);
}

template <class T>
void insert_stored(MappedStore<T>& store, const Insertions<T>& insertions) {
  std::visit([&](auto& storage) { insert_one(storage, insertions); }, store.any);
}

template <class T>
bool same_storage(const MappedStore<T>& a, const MappedStore<T>& b) {
  if (a.any.index() != b.any.index()) return false;
  return std::visit(
      [&](const auto& storage) {
        return same_one(storage, std::get<std::decay_t<decltype(storage)>>(b.any));
      },
      a.any);
}

template <class T>
void walk_stored(MappedStore<T>& store, const Mapping& mapping, const Walk<T>& see) {
  std::visit([&](auto& storage) { walk_one(storage, mapping, see); }, store.any);
}

#define TESSERA_INSTANTIATE_STORE(T)                                        \
  template std::vector<std::int64_t> storage_shape(const MappedStore<T>&);  \
  template void check_storage(const MappedStore<T>&);                       \
  template std::string storage_name(const MappedStore<T>&);                 \
  template T* find_stored(MappedStore<T>&, Place);                          \
  template void insert_stored(MappedStore<T>&, const Insertions<T>&);       \
  template bool same_storage(const MappedStore<T>&, const MappedStore<T>&); \
  template void walk_stored(MappedStore<T>&, const Mapping&, const Walk<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_STORE)

#undef TESSERA_INSTANTIATE_STORE

}  // namespace tessera::arrays::internal
