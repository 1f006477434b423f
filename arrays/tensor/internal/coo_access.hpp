#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/internal/coo_store.hpp"

namespace tessera::arrays::internal {

// Access to the buffers of a tensor for the sources of this folder.
template <class T>
struct CooAccess {
  static CooStore<T>& settled(const CooTensor<T>& tensor) {
    tensor.store_->settle();
    return *tensor.store_;
  }

  // Returns a view that shares the buffers.
  static CooTensor<T> view(const CooTensor<T>& tensor, TensorLayout layout) {
    return {tensor.store_, std::move(layout), true};
  }

  // Returns a tensor with these entries, which must ascend strictly in natural order and be inside
  // the shape.
  static CooTensor<T> from_sorted(std::vector<std::int64_t> shape,
                                  std::vector<std::int32_t> indices, std::vector<T> values) {
    auto store = std::make_shared<CooStore<T>>(std::move(shape));
    store->indices = std::move(indices), store->values = std::move(values);
    store->sorted = store->values.size();
    TensorLayout layout = TensorLayout::whole(store->shape);
    return {std::move(store), std::move(layout), false};
  }
};

// Calls see(index in the underlying tensor [underlying rank], value) for each entry in the view, in
// the order of the buffers. `see` may change the value.
template <class T, class See>
void visit(const CooTensor<T>& tensor, See&& see) {
  CooStore<T>& store = CooAccess<T>::settled(tensor);
  const TensorLayout& layout = tensor.layout();
  const std::size_t rank = store.rank();
  const Range range = store.narrow(layout);
  for (std::int64_t k = range.begin; k < range.end; ++k) {
    const std::int32_t* index = store.index(std::size_t(k));
    bool seen = true;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t at = index[d] - layout.offsets[d];
      seen &= at >= 0 && at < layout.lengths[d];
    }
    if (seen) see(index, store.values[std::size_t(k)]);
  }
}

// Returns the index along one dimension of a view.
inline std::int64_t along(const ViewAxis& axis, const std::int32_t* index) {
  return axis.dim < 0 ? 0 : index[axis.dim] - axis.offset;
}

}  // namespace tessera::arrays::internal
