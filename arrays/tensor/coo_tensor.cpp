#include "tessera/arrays/tensor/coo_tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/tensor/internal/coo_access.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace tessera::arrays {
namespace {

// An index of the underlying tensor. It needs no heap memory for usual ranks.
class PhysicalIndex {
 public:
  PhysicalIndex(const TensorLayout& layout, std::span<const std::int64_t> index) {
    if (layout.flags.size() > few_.size()) many_.resize(layout.flags.size());
    layout.to_physical(index, many_.empty() ? few_.data() : many_.data());
  }
  const std::int32_t* data() const { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<std::int32_t, 16> few_ = {};
  std::vector<std::int32_t> many_;
};

// Copies of the entries of a tensor, to be changed.
template <class T>
struct Entries {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> indices;  // [entries][rank]
  std::vector<T> values;
};

// Returns the entries whose index along `axis` is in `wanted`; its position there is their new
// index.
template <class T>
Entries<T> take_indices(const Entries<T>& from, std::size_t axis,
                        const std::vector<std::int64_t>& wanted) {
  std::vector<std::pair<std::int64_t, std::int32_t>> places;  // wanted index, new index
  for (std::size_t i = 0; i < wanted.size(); ++i)
    places.emplace_back(resolve_index(wanted[i], from.shape[axis], std::int64_t(axis)), i);
  std::sort(places.begin(), places.end());
  Entries<T> result{from.shape, {}, {}};
  result.shape[axis] = static_cast<std::int64_t>(wanted.size());
  const std::size_t rank = from.shape.size();
  for (std::size_t k = 0; k < from.values.size(); ++k) {
    const std::int32_t* index = from.indices.data() + k * rank;
    auto place = std::lower_bound(places.begin(), places.end(),
                                  std::pair<std::int64_t, std::int32_t>(index[axis], 0));
    for (; place != places.end() && place->first == index[axis]; ++place) {
      result.indices.insert(result.indices.end(), index, index + rank);
      result.indices[result.indices.size() - rank + axis] = place->second;
      result.values.push_back(from.values[k]);
    }
  }
  return result;
}

template <class T>
void check_entries(const std::vector<std::int64_t>& shape, const std::vector<std::int32_t>& indices,
                   const std::vector<T>& values) {
  const std::size_t rank = shape.size();
  if (indices.size() != values.size() * rank)
    throw Error(ErrorCode::BadInput,
                fmt::format("a COO tensor of rank {} has {} values and {} indices; it needs {} "
                            "indices for each value",
                            rank, values.size(), indices.size(), rank));
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= shape[i % rank])
      throw Error(ErrorCode::BadInput,
                  fmt::format("entry {} of a COO tensor has index {} in dimension {}; it must be "
                              "in {}",
                              i / rank, indices[i], i % rank, range_of_indices(shape[i % rank])));
}

}  // namespace

template <class T>
CooTensor<T>::CooTensor(std::vector<std::int64_t> shape)
    : store_(std::make_shared<internal::CooStore<T>>(std::move(shape))),
      layout_(TensorLayout::whole(store_->shape)) {}

template <class T>
CooTensor<T>::CooTensor(std::vector<std::int64_t> shape, std::vector<std::int32_t> indices,
                        std::vector<T> values)
    : CooTensor(std::move(shape)) {
  check_entries(store_->shape, indices, values);
  store_->take(std::move(indices), std::move(values));
}

template <class T>
CooTensor<T>::CooTensor(std::shared_ptr<internal::CooStore<T>> store, TensorLayout layout,
                        bool is_view)
    : store_(std::move(store)), layout_(std::move(layout)), is_view_(is_view) {}

template <class T>
std::int64_t CooTensor<T>::nnz() const {
  std::int64_t count = 0;
  internal::visit(*this, [&](const std::int32_t*, T) { ++count; });
  return count;
}

template <class T>
std::vector<std::int32_t> CooTensor<T>::indices() const {
  std::vector<std::int32_t> result;
  const std::vector<ViewAxis> axes = layout_.axes();
  internal::visit(*this, [&](const std::int32_t* index, T) {
    for (const ViewAxis& axis : axes)
      result.push_back(static_cast<std::int32_t>(internal::along(axis, index)));
  });
  return result;
}

template <class T>
std::vector<T> CooTensor<T>::values() const {
  std::vector<T> result;
  internal::visit(*this, [&](const std::int32_t*, T value) { result.push_back(value); });
  return result;
}

template <class T>
std::optional<std::int64_t> CooTensor<T>::find(std::span<const std::int64_t> index) const {
  const PhysicalIndex at(layout_, index);
  const auto entry = internal::CooAccess<T>::settled(*this).find(at.data());
  return entry ? std::optional(static_cast<std::int64_t>(*entry)) : std::nullopt;
}

template <class T>
T CooTensor<T>::get(std::span<const std::int64_t> index) const {
  const auto entry = find(index);
  return entry ? store_->values[std::size_t(*entry)] : T(0);
}

template <class T>
void CooTensor<T>::put(std::span<const std::int64_t> index, T value) {
  const PhysicalIndex at(layout_, index);
  store_->put(at.data(), value);
}

template <class T>
CooTensor<T> CooTensor<T>::select(const std::vector<Selector>& selectors) const {
  SelectedLayout selected = select_layout(layout_, selectors);
  const CooTensor view(store_, std::move(selected.layout), true);
  const auto is_specified = [](const Selector& s) { return std::holds_alternative<Specified>(s); };
  if (std::none_of(selectors.begin(), selectors.end(), is_specified)) return view;
  Entries<T> entries{view.shape(), view.indices(), view.values()};
  for (std::size_t s = 0; s < selectors.size(); ++s) {
    const auto* list = std::get_if<Specified>(&selectors[s]);
    if (list == nullptr || list->at.size() == 1) continue;  // one index is a point of the view
    entries = take_indices(entries, std::size_t(selected.axis_of[s]), list->at);
  }
  return {std::move(entries.shape), std::move(entries.indices), std::move(entries.values)};
}

template <class T>
CooTensor<T> CooTensor<T>::clone() const {
  return {shape(), indices(), values()};
}

template <class T>
void CooTensor<T>::sort_by(std::vector<std::int64_t> order) {
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == store_->rank();
  for (std::size_t d = 0; is_permutation && d < sorted.size(); ++d)
    is_permutation = sorted[d] == static_cast<std::int64_t>(d);
  if (!is_permutation)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("[{}] is no order of the {} dimensions of a tensor; name each of 0..{} "
                            "once",
                            fmt::join(order, ", "), store_->rank(),
                            static_cast<std::int64_t>(store_->rank()) - 1));
  store_->wanted = std::move(order);
}

template <class T>
std::vector<std::int64_t> CooTensor<T>::order() const {
  return store_->wanted;
}

template <class T>
void CooTensor<T>::settle() const {
  store_->settle();
}

template <class T>
bool CooTensor<T>::is_settled() const {
  return store_->is_settled();
}

template <class T>
Bytes CooTensor<T>::bytes() const {
  return store_->bytes();
}

template <class T>
bool operator==(const CooTensor<T>& a, const CooTensor<T>& b) {
  if (a.shape() != b.shape()) return false;
  const CooTensor<T> own_a = a.clone(), own_b = b.clone();  // both in natural order
  return own_a.indices() == own_b.indices() && own_a.values() == own_b.values();
}

template <class T>
std::ostream& operator<<(std::ostream& out, const CooTensor<T>& tensor) {
  return out << fmt::format("COO tensor {}, {} entries", fmt::join(tensor.shape(), " x "),
                            tensor.nnz());
}

#define TESSERA_INSTANTIATE_TENSOR(T)                                 \
  template class CooTensor<T>;                                        \
  template bool operator==(const CooTensor<T>&, const CooTensor<T>&); \
  template std::ostream& operator<<(std::ostream&, const CooTensor<T>&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_TENSOR)

#undef TESSERA_INSTANTIATE_TENSOR

}  // namespace tessera::arrays
