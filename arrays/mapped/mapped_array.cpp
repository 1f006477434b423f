#include "tessera/arrays/mapped/mapped_array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/arrays/mapped/internal/mapped_store.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

using internal::MappedStore;
using internal::shape_text;

template <class T>
std::shared_ptr<MappedStore<T>> make_store(const Mapping& mapping, MappedStore<T> store) {
  const auto given = storage_shape(store), needed = mapping.storage_shape();
  if (given != needed)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("mapped array of {}: the {} storage is {}; the mapping needs {}",
                            shape_text(mapping.shape()), storage_name(store), shape_text(given),
                            shape_text(needed)));
  check_storage(store);
  return std::make_shared<MappedStore<T>>(std::move(store));
}

}  // namespace

template <class T>
MappedArray<T>::MappedArray(Mapping mapping, std::shared_ptr<MappedStore<T>> store)
    : mapping_(std::move(mapping)), store_(std::move(store)) {}
template <class T>
MappedArray<T>::MappedArray(Mapping mapping, StridedStorage<T> storage)
    : mapping_(std::move(mapping)), store_(make_store<T>(mapping_, {std::move(storage)})) {}
template <class T>
MappedArray<T>::MappedArray(Mapping mapping, CooTensor<T> storage)
    : mapping_(std::move(mapping)), store_(make_store<T>(mapping_, {std::move(storage)})) {}
template <class T>
MappedArray<T>::MappedArray(Mapping mapping, FlatCooStorage<T> storage)
    : mapping_(std::move(mapping)), store_(make_store<T>(mapping_, {std::move(storage)})) {}
template <class T>
MappedArray<T>::MappedArray(Mapping mapping, sparse::Csr<T> storage)
    : mapping_(std::move(mapping)), store_(make_store<T>(mapping_, {std::move(storage)})) {}
template <class T>
MappedArray<T>::MappedArray(Mapping mapping, const MappedArray& storage)
    : mapping_(std::move(mapping)), store_(make_store<T>(mapping_, {storage})) {}

template <class T>
template <class S>
const S* MappedArray<T>::storage() const {
  return std::get_if<S>(&store_->any);
}

template <class T>
MappedArray<T> MappedArray<T>::with_unspecified(std::optional<T> value) const {
  MappedArray result = *this;
  result.unspecified_ = value;
  return result;
}

template <class T>
std::optional<T> MappedArray<T>::find(std::span<const std::int64_t> index) const {
  const T* value = find_stored(*store_, mapping_.reduce(index));
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// Writes value_at(i) to the i-th element, counted row-major, for all elements.
template <class T>
template <class ValueAt>
void MappedArray<T>::write(const ValueAt& value_at, Missing missing) {
  std::vector<std::pair<T*, T>> stored;
  internal::Insertions<T> added;
  std::int64_t i = 0;
  internal::for_each_index(shape(), [&](std::span<const std::int64_t> index) {
    const std::vector<std::int64_t> place = mapping_.reduce(index);
    const T value = value_at(i++);
    if (T* at = find_stored(*store_, place)) {
      stored.emplace_back(at, value);
      return;
    }
    if (missing == Missing::Refuse)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the {} storage of a mapped array has no element ({}); "
                              "Missing::Insert stores it",
                              storage_name(), fmt::join(index, ", ")));
    added.places.insert(added.places.end(), place.begin(), place.end());
    added.values.push_back(value);
  });
  for (const auto& [at, value] : stored) *at = value;
  if (!added.values.empty()) insert_stored(*store_, added);
}

template <class T>
void MappedArray<T>::put(std::span<const std::int64_t> index, T value, Missing missing) {
  std::vector<AxisSelector> selectors;
  for (const std::int64_t i : index) selectors.push_back(Point{i});
  if (std::ssize(index) != rank()) mapping_.reduce(index);  // throws the error for the number
  select(selectors).write([value](std::int64_t) { return value; }, missing);
}

template <class T>
void MappedArray<T>::assign(T value, Missing missing) {
  write([value](std::int64_t) { return value; }, missing);
}

template <class T>
void MappedArray<T>::assign(const DenseArray<T>& values, Missing missing) {
  check(values);
  internal::require_same_shape("assign, array and values", shape(), values.shape);
  write([&values](std::int64_t i) { return values.values[std::size_t(i)]; }, missing);
}

template <class T>
std::optional<T> MappedArray<T>::get(std::span<const std::int64_t> index) const {
  const std::optional<T> found = find(index);
  return found ? found : unspecified_;
}

template <class T>
void MappedArray<T>::visit(const See& see) const {
  internal::walk_stored<T>(
      *store_, mapping_,
      [&see](std::span<const std::int64_t> index, T& value) { see(index, value); });
}

template <class T>
std::int64_t MappedArray<T>::specified() const {
  std::int64_t count = 0;
  visit([&](std::span<const std::int64_t>, T) { ++count; });
  return count;
}

template <class T>
bool MappedArray<T>::is_full() const {
  return specified() == internal::checked_elements(shape());
}

template <class T>
MappedArray<T> MappedArray<T>::select(const std::vector<AxisSelector>& selectors) const {
  return MappedArray(mapping_.select(selectors), store_).with_unspecified(unspecified_);
}

template <class T>
MappedArray<T> MappedArray<T>::swapped(std::int64_t a, std::int64_t b) const {
  return MappedArray(mapping_.swapped(a, b), store_).with_unspecified(unspecified_);
}

template <class T>
std::string MappedArray<T>::storage_name() const {
  return internal::storage_name(*store_);
}

template <class T>
bool MappedArray<T>::is_same(const MappedArray& other) const {
  return mapping_ == other.mapping_ && unspecified_ == other.unspecified_ &&
         same_storage(*store_, *other.store_);
}

template <class T>
bool equal(const MappedArray<T>& a, const MappedArray<T>& b) {
  if (a.shape() != b.shape()) return false;
  const bool gaps_differ = a.unspecified() != b.unspecified();
  if (gaps_differ && !(a.is_full() && b.is_full())) return false;
  bool same = true;
  a.visit([&](std::span<const std::int64_t> i, T v) { same = same && b.get(i) == v; });
  b.visit([&](std::span<const std::int64_t> i, T v) { same = same && a.get(i) == v; });
  return same;
}

template <class T>
std::ostream& operator<<(std::ostream& out, const MappedArray<T>& array) {
  return out << fmt::format("mapped array {} in {} {}, {} stored", shape_text(array.shape()),
                            array.storage_name(), shape_text(array.mapping().storage_shape()),
                            array.specified());
}

#define TESSERA_INSTANTIATE_MAPPED(T)                                                   \
  template class MappedArray<T>;                                                        \
  template const StridedStorage<T>* MappedArray<T>::storage<StridedStorage<T>>() const; \
  template const CooTensor<T>* MappedArray<T>::storage<CooTensor<T>>() const;           \
  template const FlatCooStorage<T>* MappedArray<T>::storage<FlatCooStorage<T>>() const; \
  template const sparse::Csr<T>* MappedArray<T>::storage<sparse::Csr<T>>() const;       \
  template const MappedArray<T>* MappedArray<T>::storage<MappedArray<T>>() const;       \
  template bool equal(const MappedArray<T>&, const MappedArray<T>&);                    \
  template std::ostream& operator<<(std::ostream&, const MappedArray<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_MAPPED)

#undef TESSERA_INSTANTIATE_MAPPED

}  // namespace tessera::arrays
