#include "tessera/arrays/mapped/internal/mapped_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/arrays/internal/elements.hpp"
#include "tessera/arrays/internal/shape.hpp"
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
std::optional<T> find_one(const StridedStorage<T>& storage, Place place) {
  return storage.values.at(position(storage, place));
}
template <class T>
std::optional<T> find_one(const CooTensor<T>& storage, Place place) {
  if (!storage.find(place)) return std::nullopt;
  return storage.get(place);
}
template <class T>
std::optional<T> find_one(const FlatCooStorage<T>& storage, Place place) {
  const std::int64_t wanted = flat_position(storage.shape, place);
  const auto at = std::ranges::lower_bound(storage.positions, wanted);
  if (at == storage.positions.end() || *at != wanted) return std::nullopt;
  return storage.values[std::size_t(at - storage.positions.begin())];
}
template <class T>
std::optional<T> find_one(const sparse::Csr<T>& storage, Place place) {
  const auto first = storage.col.begin() + storage.row_begin[place[0]];
  const auto last = storage.col.begin() + storage.row_begin[place[0] + 1];
  const auto at = std::lower_bound(first, last, place[1]);
  if (at == last || *at != place[1]) return std::nullopt;
  return storage.values[std::size_t(at - storage.col.begin())];
}
template <class T>
std::optional<T> find_one(const MappedArray<T>& storage, Place place) {
  return storage.find(place);
}

template <class T>
using See = typename MappedArray<T>::See;

// Calls each(index) for all indices of a shape, row-major.
template <class Each>
void for_each_index(const Indices& shape, Each&& each) {
  if (checked_elements(shape) == 0) return;
  Indices index(shape.size());
  while (true) {
    each(Place(index));
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

template <class T>
void visit_one(const StridedStorage<T>& storage, const Mapping& mapping, const See<T>& see) {
  for_each_index(mapping.shape(), [&](Place index) {
    see(index, storage.values.at(position(storage, mapping.reduce(index))));
  });
}

template <class T>
void show(const Mapping& mapping, Place place, T value, const See<T>& see) {
  if (const auto index = mapping.promote(place)) see(*index, value);
}

template <class T>
void visit_one(const CooTensor<T>& storage, const Mapping& mapping, const See<T>& see) {
  const std::vector<std::int32_t> indices = storage.indices();
  const std::vector<T> values = storage.values();
  const std::size_t rank = std::size_t(storage.rank());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto first = indices.begin() + std::ptrdiff_t(i * rank);
    show(mapping, Indices(first, first + std::ptrdiff_t(rank)), values[i], see);
  }
}

template <class T>
void visit_one(const FlatCooStorage<T>& storage, const Mapping& mapping, const See<T>& see) {
  Indices place(storage.shape.size());
  for (std::size_t i = 0; i < storage.positions.size(); ++i) {
    std::int64_t at = storage.positions[i];
    for (std::size_t k = place.size(); k-- > 0; at /= storage.shape[k])
      place[k] = at % storage.shape[k];
    show(mapping, place, storage.values[i], see);
  }
}

// Skips rows that the mapping does not show.
template <class T>
void visit_one(const sparse::Csr<T>& storage, const Mapping& mapping, const See<T>& see) {
  Indices index(std::size_t(mapping.rank()));
  for (std::int64_t r = 0; r < storage.rows; ++r) {
    if (storage.row_begin[r] == storage.row_begin[r + 1] || !mapping.promote_axis(0, r, index))
      continue;
    for (std::int64_t k = storage.row_begin[r]; k < storage.row_begin[r + 1]; ++k)
      if (mapping.promote_axis(1, storage.col[k], index)) see(index, storage.values[k]);
  }
}

template <class T>
void visit_one(const MappedArray<T>& storage, const Mapping& mapping, const See<T>& see) {
  storage.visit([&](Place place, T value) { show(mapping, place, value, see); });
}

template <class T>
bool same_one(const StridedStorage<T>& a, const StridedStorage<T>& b) {
  bool same = a.shape == b.shape;
  if (same)
    for_each_index(a.shape, [&](Place i) { same = same && find_one(a, i) == find_one(b, i); });
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
std::optional<T> find_stored(const MappedStore<T>& store, Place place) {
  return std::visit([place](const auto& storage) { return find_one(storage, place); }, store.any);
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
void visit_stored(const MappedStore<T>& store, const Mapping& mapping, const See<T>& see) {
  std::visit([&](const auto& storage) { visit_one(storage, mapping, see); }, store.any);
}

#define TESSERA_INSTANTIATE_STORE(T)                                        \
  template std::vector<std::int64_t> storage_shape(const MappedStore<T>&);  \
  template void check_storage(const MappedStore<T>&);                       \
  template std::string storage_name(const MappedStore<T>&);                 \
  template std::optional<T> find_stored(const MappedStore<T>&, Place);      \
  template bool same_storage(const MappedStore<T>&, const MappedStore<T>&); \
  template void visit_stored(const MappedStore<T>&, const Mapping&,         \
                             const typename MappedArray<T>::See&);

TESSERA_INSTANTIATE_STORE(float)
TESSERA_INSTANTIATE_STORE(double)

#undef TESSERA_INSTANTIATE_STORE

}  // namespace tessera::arrays::internal
