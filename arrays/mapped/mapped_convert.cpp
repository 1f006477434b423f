#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

using Indices = std::vector<std::int64_t>;

// The entries of a new storage before they are sorted.
template <class T>
struct MappedEntries {
  Indices shape;
  std::vector<std::int32_t> places;  // [entries][rank]
  std::vector<T> values;

  void add(const Indices& place, T value) {
    for (const std::int64_t p : place) places.push_back(checked_int32(p, "index of a storage"));
    values.push_back(value);
  }
};

void require_shape(const Indices& array, const Mapping& mapping) {
  internal::require_same_shape("to_mapped, array and mapping", array, mapping.shape());
}

template <class T>
FlatCooStorage<T> flat_of(const CooTensor<T>& tensor) {
  FlatCooStorage<T> flat{tensor.shape(), {}, tensor.values()};
  internal::checked_elements(flat.shape);
  const std::vector<std::int32_t> indices = tensor.indices();
  for (std::size_t i = 0; i < indices.size(); i += flat.shape.size()) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < flat.shape.size(); ++k) at = at * flat.shape[k] + indices[i + k];
    flat.positions.push_back(at);
  }
  return flat;
}

// Returns the row-major strides of a shape.
Indices strides_of(const Indices& shape) {
  Indices strides(shape.size(), 1);
  for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

template <class T>
StridedStorage<T> strided_of(const MappedEntries<T>& entries) {
  const Indices strides = strides_of(entries.shape);
  std::vector<T> values(std::size_t(internal::checked_elements(entries.shape)));
  const std::size_t rank = entries.shape.size();
  for (std::size_t i = 0; i < entries.values.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < rank; ++k) at += entries.places[i * rank + k] * strides[k];
    values[std::size_t(at)] = entries.values[i];
  }
  return {Buffer<T>(std::move(values)), entries.shape, strides};
}

template <class T>
MappedArray<T> stored_as(const Mapping& mapping, MappedEntries<T> entries, MappedKind kind) {
  if (kind == MappedKind::Strided) return MappedArray<T>(mapping, strided_of(entries));
  if (kind == MappedKind::Csr && entries.shape.size() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("to_mapped: a csr needs two storage axes; the mapping has {}",
                            entries.shape.size()));
  const CooTensor<T> tensor(entries.shape, std::move(entries.places), std::move(entries.values));
  if (kind == MappedKind::Csr) return MappedArray<T>(mapping, to_csr(tensor));
  if (kind == MappedKind::FlatCoo) return MappedArray<T>(mapping, flat_of(tensor));
  return MappedArray<T>(mapping, tensor);
}

}  // namespace

template <class T>
MappedArray<T> to_mapped(const CooTensor<T>& tensor, const Mapping& mapping, MappedKind kind) {
  require_shape(tensor.shape(), mapping);
  MappedEntries<T> entries{mapping.storage_shape(), {}, {}};
  const std::vector<std::int32_t> indices = tensor.indices();
  const std::vector<T> values = tensor.values();
  const std::size_t rank = std::size_t(tensor.rank());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto first = indices.begin() + std::ptrdiff_t(i * rank);
    entries.add(mapping.reduce(Indices(first, first + std::ptrdiff_t(rank))), values[i]);
  }
  return stored_as(mapping, std::move(entries), kind);
}

template <class T>
MappedArray<T> to_mapped(const DenseArray<T>& array, const Mapping& mapping, MappedKind kind) {
  check(array);
  require_shape(array.shape, mapping);
  MappedEntries<T> entries{mapping.storage_shape(), {}, {}};
  Indices index(array.shape.size());
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    if (array.values[i] == T(0)) continue;
    std::int64_t at = std::int64_t(i);
    for (std::size_t d = index.size(); d-- > 0; at /= array.shape[d])
      index[d] = at % array.shape[d];
    entries.add(mapping.reduce(index), array.values[i]);
  }
  return stored_as(mapping, std::move(entries), kind);
}

template <class T>
CooTensor<T> to_tensor(const MappedArray<T>& array) {
  MappedEntries<T> entries{array.shape(), {}, {}};
  array.visit([&](std::span<const std::int64_t> index, T value) {
    entries.add({index.begin(), index.end()}, value);
  });
  return CooTensor<T>(entries.shape, std::move(entries.places), std::move(entries.values));
}

template <class T>
sparse::Csr<T> to_csr(const MappedArray<T>& array) {
  if (array.rank() != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a mapped array of {} is no matrix; it must have two dimensions",
                            internal::shape_text(array.shape())));
  return to_csr(to_tensor(array));
}

template <class T>
DenseArray<T> to_dense(const MappedArray<T>& array) {
  DenseArray<T> dense{array.shape(), {}};
  if (!array.unspecified() && !array.is_full())
    throw Error(ErrorCode::InvalidArgument,
                "to_dense: elements that are not stored have no value; see with_unspecified");
  dense.values.assign(std::size_t(internal::checked_elements(dense.shape)),
                      array.unspecified().value_or(T(0)));
  const Indices strides = strides_of(dense.shape);
  array.visit([&](std::span<const std::int64_t> index, T value) {
    dense.values[std::size_t(
        std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0}))] = value;
  });
  return dense;
}

#define TESSERA_INSTANTIATE_MAPPED(T)                                                  \
  template MappedArray<T> to_mapped(const CooTensor<T>&, const Mapping&, MappedKind);  \
  template MappedArray<T> to_mapped(const DenseArray<T>&, const Mapping&, MappedKind); \
  template CooTensor<T> to_tensor(const MappedArray<T>&);                              \
  template sparse::Csr<T> to_csr(const MappedArray<T>&);                               \
  template DenseArray<T> to_dense(const MappedArray<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_MAPPED)

#undef TESSERA_INSTANTIATE_MAPPED

}  // namespace tessera::arrays
