#include "tessera/arrays/tensor/internal/coo_store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/tensor/internal/sort_positions.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {
namespace {

// The number of puts that may wait before they are merged, if there are few entries.
constexpr std::size_t kFewPuts = 1024;

// Returns the capacity for a number of entries. It grows by eighths, so that settled buffers stay
// within 9/8 of their content.
std::size_t with_room(std::size_t entries) { return entries + entries / 8 + 16; }

}  // namespace

std::string to_text(const std::int32_t* index, std::size_t rank) {
  return fmt::format("({})", fmt::join(index, index + rank, ", "));
}

template <class T>
CooStore<T>::CooStore(std::vector<std::int64_t> lengths)
    : shape(std::move(lengths)), order(shape.size()) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] < 0 || shape[d] > kMax)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("dimension {} of a tensor has length {}; it must be in 0..{}", d,
                              shape[d], kMax));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  wanted = order;
}

template <class T>
Bytes CooStore<T>::bytes() const {
  return Bytes(static_cast<std::int64_t>(indices.capacity() * sizeof(std::int32_t) +
                                         values.capacity() * sizeof(T)));
}

template <class T>
int CooStore<T>::compare(const std::int32_t* a, const std::int32_t* b) const {
  for (const std::int64_t d : order)
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  return 0;
}

template <class T>
void CooStore<T>::take(std::vector<std::int32_t> new_indices, std::vector<T> new_values) {
  indices = std::move(new_indices), values = std::move(new_values);
  const auto ascends = [this] {
    for (std::size_t k = 1; k < values.size(); ++k)
      if (compare(index(k - 1), index(k)) >= 0) return false;
    return true;
  };
  if (!ascends()) {
    const auto positions = sort_positions(indices, values.size(), shape, order);
    for (std::size_t k = 1; k < positions.size(); ++k)
      if (compare(index(positions[k - 1]), index(positions[k])) == 0)
        throw Error(
            ErrorCode::BadInput,
            fmt::format("entry {} of a COO tensor is given twice, at positions {} and {}; "
                        "drop one or add them up",
                        to_text(index(positions[k]), rank()), positions[k - 1], positions[k]));
    gather(positions);
  }
  indices.shrink_to_fit(), values.shrink_to_fit();
  sorted = values.size();
}

// Reorders all entries. Values are copied first and indices afterwards, so that only one of the two
// exists twice at any time.
template <class T>
void CooStore<T>::gather(const std::vector<std::uint64_t>& positions) {
  std::vector<T> new_values(values.size());
  for (std::size_t k = 0; k < positions.size(); ++k) new_values[k] = values[positions[k]];
  values = std::move(new_values);
  std::vector<std::int32_t> new_indices(indices.size());
  for (std::size_t k = 0; k < positions.size(); ++k)
    std::copy_n(index(positions[k]), rank(), new_indices.data() + k * rank());
  indices = std::move(new_indices);
}

template <class T>
void CooStore<T>::append(const std::int32_t* at, T value) {
  if (values.size() == values.capacity()) {
    values.reserve(with_room(values.size()));
    indices.reserve(with_room(values.size()) * rank());
  }
  indices.insert(indices.end(), at, at + rank());
  values.push_back(value);
}

template <class T>
void CooStore<T>::put(const std::int32_t* at, T value) {
  if (sorted == values.size()) {
    const std::size_t k = lower_bound(at);
    const bool is_there = k < sorted && compare(index(k), at) == 0;
    if (!is_there && value == T(0)) return;
    if (is_there && value != T(0)) {
      values[k] = value;
      return;
    }
  }
  append(at, value);
  if (values.size() - sorted > std::max(kFewPuts, sorted)) merge_puts();
}

template <class T>
void CooStore<T>::settle() {
  if (sorted != values.size()) merge_puts();
  if (order == wanted) return;
  order = wanted;
  gather(sort_positions(indices, values.size(), shape, order));
}

template <class T>
bool CooStore<T>::puts_only_append() const {
  for (std::size_t k = sorted; k < values.size(); ++k)
    if (values[k] == T(0) || (k > 0 && compare(index(k - 1), index(k)) >= 0)) return false;
  return true;
}

template <class T>
void CooStore<T>::merge_puts() {
  if (puts_only_append()) {
    sorted = values.size();
    return;
  }
  const auto puts = sort_positions(std::span(indices).subspan(sorted * rank()),
                                   values.size() - sorted, shape, order);
  CooStore merged(shape);
  merged.values.reserve(values.size());
  merged.indices.reserve(indices.size());
  std::size_t old = 0;
  for (std::size_t p = 0; p < puts.size(); ++p) {
    const std::int32_t* at = index(sorted + puts[p]);
    if (p + 1 < puts.size() && compare(at, index(sorted + puts[p + 1])) == 0) continue;
    for (; old < sorted && compare(index(old), at) < 0; ++old)
      merged.append(index(old), values[old]);
    if (old < sorted && compare(index(old), at) == 0) ++old;
    const T value = values[sorted + puts[p]];
    if (value != T(0)) merged.append(at, value);
  }
  for (; old < sorted; ++old) merged.append(index(old), values[old]);
  if (merged.values.capacity() > with_room(merged.values.size()))
    merged.values.shrink_to_fit(), merged.indices.shrink_to_fit();
  values = std::move(merged.values), indices = std::move(merged.indices);
  sorted = values.size();
}

template <class T>
std::size_t CooStore<T>::lower_bound(const std::int32_t* at) const {
  std::size_t begin = 0, end = sorted;
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (compare(index(middle), at) < 0)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class T>
std::optional<std::size_t> CooStore<T>::find(const std::int32_t* at) const {
  const std::size_t k = lower_bound(at);
  if (k < sorted && compare(index(k), at) == 0) return k;
  return std::nullopt;
}

template <class T>
Range CooStore<T>::narrow(const TensorLayout& layout) const {
  std::size_t begin = 0, end = sorted;
  // Returns the first entry of [begin, end), where dimension d ascends, whose index is `least` or
  // more.
  const auto first = [&](std::int64_t d, std::int64_t least) {
    std::size_t low = begin, high = end;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (index(middle)[d] < least)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  for (const std::int64_t d : order) {
    const std::int64_t offset = layout.offsets[std::size_t(d)];
    const std::int64_t length = layout.lengths[std::size_t(d)];
    const std::size_t from = first(d, offset), to = first(d, offset + length);
    begin = from, end = to;
    if (length != 1) break;
  }
  return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
}

#define TESSERA_INSTANTIATE_COO(T) template struct CooStore<T>;

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_COO)

#undef TESSERA_INSTANTIATE_COO

}  // namespace tessera::arrays::internal
