#include "tessera/arrays/ops/rearrange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/flat_ops.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

using internal::Fields;
using internal::Flat;
using Shape = std::vector<std::int64_t>;

template <class T>
Shape shape_of_any(const CooTensor<T>& x) {
  return x.shape();
}
template <class T>
Shape shape_of_any(const MappedArray<T>& x) {
  return x.shape();
}
template <class X>
Shape shape_of_any(const X& matrix) {
  return {matrix.rows(), matrix.cols()};
}

Shape checked_order(const Shape& order, const Shape& shape) {
  Shape sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == shape.size();
  for (std::size_t d = 0; is_permutation && d < sorted.size(); ++d)
    is_permutation = sorted[d] == static_cast<std::int64_t>(d);
  if (!is_permutation)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("permute: [{}] is no order of the dimensions of an array of {}; name "
                    "each of 0..{} once",
                    fmt::join(order, ", "), internal::shape_text(shape), std::ssize(shape) - 1));
  return order;
}

// Returns the shape without -1.
Shape completed(Shape shape, std::int64_t elements) {
  const auto open = std::find(shape.begin(), shape.end(), std::int64_t{-1});
  if (open != shape.end()) {
    *open = 1;
    const std::int64_t others = internal::checked_elements(shape);
    if (others > 0 && elements % others == 0) *open = elements / others;
  }
  if (internal::checked_elements(shape) != elements)
    throw Error(ErrorCode::InvalidArgument, fmt::format("reshape: {} elements do not fill {}",
                                                        elements, internal::shape_text(shape)));
  return shape;
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(rest),
               [](std::int64_t length) { return length != 1; });
  return rest;
}

// Returns a view with dimensions of length 1 at other places, or nothing if there is none.
template <class T>
std::optional<CooTensor<T>> as_view(const CooTensor<T>& x, const Shape& shape) {
  return internal::with_ones(x, shape);
}
template <class X>
std::optional<CooTensor<typename X::Value>> as_view(const X&, const Shape&) {
  return std::nullopt;
}

// Returns true if the order moves dimensions of length 1 only.
bool moves_ones_only(const Shape& order, const Shape& shape) {
  std::int64_t last = -1;
  for (const std::int64_t d : order) {
    if (shape[std::size_t(d)] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

template <class T>
void require_zeros(const Flat<T>& flat, const char* what) {
  if (flat.rest != T(0)) internal::refuse_rest(what);
}

// Adds up neighbours of equal key.
template <class T>
void add_up(internal::RawVector<internal::FlatEntry<T>>& entries) {
  std::size_t kept = 0;
  for (std::size_t k = 0; k < entries.size();) {
    internal::Total<T> sum(0);
    const std::uint64_t key = entries[k].key;
    for (; k < entries.size() && entries[k].key == key; ++k)
      internal::add_exactly(sum, internal::as_term(entries[k].value));
    entries[kept++] = {key, internal::narrow<T>(sum)};
  }
  entries.resize(kept);
}

}  // namespace

template <class X>
CooTensor<typename X::Value> permute(const X& x, const std::vector<std::int64_t>& order,
                                     Executor& executor) {
  const Shape shape = shape_of_any(x);
  checked_order(order, shape);
  if (moves_ones_only(order, shape))
    if (auto view = as_view(x, internal::chosen(shape, order))) return *view;
  auto flat = internal::flat_of(x, executor);
  require_zeros(flat, "permute");
  return internal::tensor_of(internal::permuted(std::move(flat), order, executor), "permute",
                             executor);
}

template <class X>
CooTensor<typename X::Value> reshape(const X& x, std::vector<std::int64_t> shape,
                                     Executor& executor) {
  const Shape from = shape_of_any(x);
  shape = completed(std::move(shape), internal::checked_elements(from));
  if (without_ones(from) == without_ones(shape))
    if (auto view = as_view(x, shape)) return *view;
  auto flat = internal::flat_of(x, executor);
  require_zeros(flat, "reshape");
  return internal::tensor_of(internal::reshaped(std::move(flat), std::move(shape), executor),
                             "reshape", executor);
}

template <class X>
CooTensor<typename X::Value> broadcast(const X& x, const std::vector<std::int64_t>& shape,
                                       Executor& executor) {
  return internal::tensor_of(internal::repeated(internal::flat_of(x, executor), shape, executor),
                             "broadcast", executor);
}

template <class T>
CooTensor<T> to_tensor(const DenseArray<T>& array, Executor& executor) {
  return internal::tensor_of(internal::from_dense(array, executor), "to_tensor", executor);
}

template <class T>
CooTensor<T> sum_duplicates(const std::vector<std::int64_t>& shape,
                            const std::vector<std::int32_t>& indices, const std::vector<T>& values,
                            Executor& executor) {
  const CooTensor<T> empty(shape);  // checks the shape
  Flat<T> flat{Fields(shape), {}, T(0)};
  const std::size_t rank = shape.size();
  if (indices.size() != values.size() * rank)
    throw Error(ErrorCode::BadInput,
                fmt::format("a COO tensor of rank {} has {} values and {} indices; it needs {} "
                            "indices for each value",
                            rank, values.size(), indices.size(), rank));
  flat.entries.resize(values.size());
  internal::for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      std::uint64_t key = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int32_t index = indices[std::size_t(k) * rank + d];
        if (index < 0 || index >= shape[d])
          throw Error(ErrorCode::BadInput,
                      fmt::format("entry {} of a COO tensor has index {} in dimension {}; it must "
                                  "be in 0..{}",
                                  k, index, d, shape[d] - 1));
        key |= flat.fields.field(d, index);
      }
      flat.entries[std::size_t(k)] = {key, values[std::size_t(k)]};
    }
  });
  internal::sort_entries(flat.entries, 0, flat.fields.bits(), executor);
  add_up(flat.entries);
  return internal::tensor_of(std::move(flat), "sum_duplicates", executor);
}

template <class X>
DenseArray<typename X::Value> to_dense_array(const X& x, Executor& executor) {
  const auto flat = internal::flat_of(x, executor);
  return {flat.fields.shape(), internal::dense_values(flat, executor)};
}

#define TESSERA_INSTANTIATE_REARRANGE(X, T)                                                  \
  template CooTensor<T> permute(const X<T>&, const std::vector<std::int64_t>&, Executor&);   \
  template CooTensor<T> reshape(const X<T>&, std::vector<std::int64_t>, Executor&);          \
  template CooTensor<T> broadcast(const X<T>&, const std::vector<std::int64_t>&, Executor&); \
  template DenseArray<T> to_dense_array(const X<T>&, Executor&);
#define TESSERA_INSTANTIATE_REARRANGES(T)                                                       \
  TESSERA_INSTANTIATE_REARRANGE(CooTensor, T)                                                   \
  TESSERA_INSTANTIATE_REARRANGE(SlicedCsr, T)                                                   \
  TESSERA_INSTANTIATE_REARRANGE(SlicedCsc, T)                                                   \
  TESSERA_INSTANTIATE_REARRANGE(MappedArray, T)                                                 \
  template CooTensor<T> to_tensor(const DenseArray<T>&, Executor&);                             \
  template CooTensor<T> sum_duplicates(const std::vector<std::int64_t>&,                        \
                                       const std::vector<std::int32_t>&, const std::vector<T>&, \
                                       Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_REARRANGES)

#undef TESSERA_INSTANTIATE_REARRANGE
#undef TESSERA_INSTANTIATE_REARRANGES

}  // namespace tessera::arrays
