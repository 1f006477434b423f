#include "tessera/arrays/ops/transform.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/flat_ops.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {

void internal::refuse_rest(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument,
              what +
                  ": elements that are not stored would be other than zero, so no sparse storage "
                  "can hold the result; make the operand dense or a mapped array first");
}

namespace {

using internal::Flat;
using internal::FlatEntry;
using internal::for_chunks;

// The functions rest_of return the value of elements that are not stored.
template <class X>
typename X::Value rest_of(const X&) {
  return typename X::Value(0);
}
template <class T>
T rest_of(const MappedArray<T>& x) {
  return x.unspecified().value_or(T(0));
}

// Changes the values of entries chunk by chunk.
template <class T>
void run_entries(const Operation<T>& operation, Flat<T>& flat, Executor& executor) {
  for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kStep = 512;
    T values[kStep];
    for (std::int64_t k = begin; k < end; k += kStep) {
      const auto count = static_cast<std::size_t>(std::min(kStep, end - k));
      for (std::size_t i = 0; i < count; ++i) values[i] = flat.entries[std::size_t(k) + i].value;
      operation.run({values, count}, values);
      for (std::size_t i = 0; i < count; ++i) flat.entries[std::size_t(k) + i].value = values[i];
    }
  });
  flat.rest = operation(flat.rest);
}

template <class X>
void change_stored(const Operation<typename X::Value>& operation, X& x, Executor& executor) {
  using T = typename X::Value;
  if (operation.may_refuse())  // nothing may have changed when an error is thrown
    internal::for_runs<T>(x, executor, [&](std::span<T> run) {
      std::vector<T> scratch(run.size());
      operation.run(run, scratch.data());
    });
  internal::for_runs<T>(x, executor, [&](std::span<T> run) { operation.run(run, run.data()); });
}

template <class U, class T>
Flat<U> cast_flat(const Flat<T>& flat, Executor& executor) {
  Flat<U> result{flat.fields, {}, cast_value<U>(flat.rest)};
  result.entries.resize(flat.entries.size());
  for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const FlatEntry<T>& entry = flat.entries[std::size_t(k)];
      result.entries[std::size_t(k)] = {entry.key, cast_value<U>(entry.value)};
    }
  });
  return result;
}

// Returns an array of zeros of the same kind and another type, to which results are made alike.
template <class U, class T>
CooTensor<U> of_type(const CooTensor<T>&) {
  return CooTensor<U>(std::vector<std::int64_t>{});
}
template <class U, class T>
SlicedCsr<U> of_type(const SlicedCsr<T>&) {
  return SlicedCsr<U>(0, 0);
}
template <class U, class T>
SlicedCsc<U> of_type(const SlicedCsc<T>&) {
  return SlicedCsc<U>(0, 0);
}
template <class U, class T>
MappedArray<U> of_type(const MappedArray<T>& x) {
  const Mapping two(std::vector<std::int64_t>{0, 0});
  if (x.template storage<StridedStorage<T>>() != nullptr)
    return {two, StridedStorage<U>{Buffer<U>(), {0, 0}, {0, 1}}};
  if (x.template storage<sparse::Csr<T>>() != nullptr) return {two, sparse::Csr<U>()};
  if (x.template storage<CooTensor<T>>() != nullptr) return {two, CooTensor<U>({0, 0})};
  return {two, FlatCooStorage<U>{{0, 0}, {}, {}}};
}

template <class U, class X>
auto cast_any(const X& x, Executor& executor) {
  using T = typename X::Value;
  return internal::stored_like(
      of_type<U>(x), cast_flat<U, T>(internal::flat_of(x, executor), executor), "cast", executor);
}

// Computes a op b for the stored elements of `a`.
template <class T>
void run_with_dense(Binary op, Flat<T>& a, const DenseArray<T>& b, Executor& executor) {
  const internal::Positions position(a.fields, b.shape);
  for_chunks(a.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kStep = 512;
    T left[kStep], right[kStep];
    for (std::int64_t k = begin; k < end; k += kStep) {
      const auto count = static_cast<std::size_t>(std::min(kStep, end - k));
      FlatEntry<T>* entries = a.entries.data() + k;
      for (std::size_t i = 0; i < count; ++i) {
        left[i] = entries[i].value;
        right[i] = b.values[std::size_t(position(entries[i].key))];
      }
      run<T>(op, {left, count}, {right, count}, left);
      for (std::size_t i = 0; i < count; ++i) entries[i].value = left[i];
    }
  });
}

}  // namespace

template <class X>
X map(const Operation<typename X::Value>& operation, const X& x, Executor& executor) {
  using T = typename X::Value;
  const T rest = rest_of(x);
  if (rest == T(0) && !operation.keeps_zero() && !std::same_as<X, MappedArray<T>>)
    internal::refuse_rest(operation.name());
  Flat<T> flat = internal::flat_of(x, executor);
  run_entries(operation, flat, executor);
  return internal::stored_like(x, std::move(flat), operation.name(), executor);
}

template <class X>
void change(const Operation<typename X::Value>& operation, X& x, Executor& executor, Reach reach) {
  using T = typename X::Value;
  const T rest = rest_of(x);
  const bool rest_stays = operation(rest) == rest;
  if (reach == Reach::Stored || rest_stays) return change_stored(operation, x, executor);
  Flat<T> flat = internal::flat_of(x, executor);
  run_entries(operation, flat, executor);
  internal::store_all(x, internal::dense_values(flat, executor));
}

template <class X>
X combine(Binary op, const X& a, const X& b, Executor& executor) {
  using T = typename X::Value;
  require_kept_type<T>(op);
  Flat<T> left = internal::flat_of(a, executor), right = internal::flat_of(b, executor);
  const auto shape =
      internal::common_shape(to_string(op), left.fields.shape(), right.fields.shape());
  left = internal::repeated(std::move(left), shape, executor);
  right = internal::repeated(std::move(right), shape, executor);
  if (!std::same_as<X, MappedArray<T>> && op == Binary::Divide)
    internal::refuse_rest(to_string(op));
  return internal::stored_like(a, internal::merged(op, left, right, executor), to_string(op),
                               executor);
}

template <class X>
DenseArray<typename X::Value> combine(Binary op, const X& a, const DenseArray<typename X::Value>& b,
                                      Executor& executor) {
  using T = typename X::Value;
  check(b);
  Flat<T> left = internal::flat_of(a, executor);
  const auto shape = internal::common_shape(to_string(op), left.fields.shape(), b.shape);
  left = internal::repeated(std::move(left), shape, executor);
  DenseArray<T> result{shape, internal::dense_values(left, executor)};
  const internal::Positions position(left.fields, b.shape);
  std::vector<T> right(result.values.size());
  std::size_t at = 0;
  internal::for_each_index(shape, [&](std::span<const std::int64_t> index) {
    std::uint64_t key = 0;
    for (std::size_t d = 0; d < index.size(); ++d) key |= left.fields.field(d, index[d]);
    right[at++] = b.values[std::size_t(position(key))];
  });
  for_chunks(std::ssize(right), executor, [&](std::int64_t begin, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - begin);
    T* to = result.values.data() + begin;
    run<T>(op, {to, count}, {right.data() + begin, count}, to);
  });
  return result;
}

template <class X>
X combine_stored(Binary op, const X& a, const DenseArray<typename X::Value>& b,
                 Executor& executor) {
  using T = typename X::Value;
  check(b);
  Flat<T> left = internal::flat_of(a, executor);
  if (internal::common_shape(to_string(op), left.fields.shape(), b.shape) != left.fields.shape())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: the dense operand {} does not broadcast to the sparse one, {}",
                            to_string(op), internal::shape_text(b.shape),
                            internal::shape_text(left.fields.shape())));
  run_with_dense(op, left, b, executor);
  return internal::stored_like(a, std::move(left), to_string(op), executor);
}

template <class U, class T>
CooTensor<U> cast(const CooTensor<T>& x, Executor& executor) {
  return cast_any<U>(x, executor);
}
template <class U, class T>
SlicedCsr<U> cast(const SlicedCsr<T>& x, Executor& executor) {
  return cast_any<U>(x, executor);
}
template <class U, class T>
SlicedCsc<U> cast(const SlicedCsc<T>& x, Executor& executor) {
  return cast_any<U>(x, executor);
}
template <class U, class T>
MappedArray<U> cast(const MappedArray<T>& x, Executor& executor) {
  return cast_any<U>(x, executor);
}

#define TESSERA_INSTANTIATE_CAST(U, T)                           \
  template CooTensor<U> cast<U>(const CooTensor<T>&, Executor&); \
  template SlicedCsr<U> cast<U>(const SlicedCsr<T>&, Executor&); \
  template SlicedCsc<U> cast<U>(const SlicedCsc<T>&, Executor&); \
  template MappedArray<U> cast<U>(const MappedArray<T>&, Executor&);
#define TESSERA_INSTANTIATE_CASTS(T)        \
  TESSERA_INSTANTIATE_CAST(float, T)        \
  TESSERA_INSTANTIATE_CAST(double, T)       \
  TESSERA_INSTANTIATE_CAST(Half, T)         \
  TESSERA_INSTANTIATE_CAST(BFloat16, T)     \
  TESSERA_INSTANTIATE_CAST(std::int32_t, T) \
  TESSERA_INSTANTIATE_CAST(std::int64_t, T)
#define TESSERA_INSTANTIATE_TRANSFORM(X, T)                                             \
  template X<T> map(const Operation<T>&, const X<T>&, Executor&);                       \
  template void change(const Operation<T>&, X<T>&, Executor&, Reach);                   \
  template X<T> combine(Binary, const X<T>&, const X<T>&, Executor&);                   \
  template DenseArray<T> combine(Binary, const X<T>&, const DenseArray<T>&, Executor&); \
  template X<T> combine_stored(Binary, const X<T>&, const DenseArray<T>&, Executor&);
#define TESSERA_INSTANTIATE_TRANSFORMS(T)     \
  TESSERA_INSTANTIATE_TRANSFORM(CooTensor, T) \
  TESSERA_INSTANTIATE_TRANSFORM(SlicedCsr, T) \
  TESSERA_INSTANTIATE_TRANSFORM(SlicedCsc, T) \
  TESSERA_INSTANTIATE_TRANSFORM(MappedArray, T)

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_CASTS)
TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_TRANSFORMS)

#undef TESSERA_INSTANTIATE_CAST
#undef TESSERA_INSTANTIATE_CASTS
#undef TESSERA_INSTANTIATE_TRANSFORM
#undef TESSERA_INSTANTIATE_TRANSFORMS

}  // namespace tessera::arrays
