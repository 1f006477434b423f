#include "tessera/arrays/internal/flat_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays::internal {

std::vector<std::int64_t> common_shape(const std::string& what, const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> shape(std::max(a.size(), b.size()));
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const std::int64_t in_a = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t in_b = i <= b.size() ? b[b.size() - i] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: {} and {} do not broadcast: counted from the end, dimension {} "
                              "has lengths {} and {}; they must be equal or one of them 1",
                              what, shape_text(a), shape_text(b), i, in_a, in_b));
    shape[shape.size() - i] = in_a == 1 ? in_b : in_a;
  }
  return shape;
}

Positions::Positions(const Fields& fields, const std::vector<std::int64_t>& shape) {
  std::int64_t stride = 1;
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const std::int64_t length = shape[shape.size() - i];
    const std::size_t d = fields.rank() - i;
    if (length != 1 && fields.bits(d) > 0)
      parts_.push_back({fields.shift(d), (std::uint64_t{1} << fields.bits(d)) - 1, stride});
    stride = checked_mul(stride, std::max<std::int64_t>(length, 1), "elements of an array");
  }
}

template <class T>
Flat<T> permuted(Flat<T> flat, std::span<const std::int64_t> order, Executor& executor) {
  Flat<T> result{Fields(chosen(flat.fields.shape(), order)), std::move(flat.entries), flat.rest};
  const Repack repack(flat.fields, order, result.fields);
  for_chunks(result.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k)
      result.entries[std::size_t(k)].key = repack(result.entries[std::size_t(k)].key);
  });
  int bits = 0;
  for (std::size_t d = 0; d < dims_to_sort(order); ++d) bits += result.fields.bits(d);
  sort_entries(result.entries, result.fields.bits() - bits, bits, executor);
  return result;
}

template <class T>
Flat<T> repeated(Flat<T> flat, const std::vector<std::int64_t>& shape, Executor& executor) {
  const std::vector<std::int64_t> from = flat.fields.shape();
  if (from == shape) return flat;
  if (common_shape("broadcast", from, shape) != shape)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("broadcast: {} cannot be repeated to {}; only dimensions of length 1 "
                            "are repeated",
                            shape_text(from), shape_text(shape)));
  Flat<T> result{Fields(shape), {}, flat.rest};
  std::vector<std::int64_t> kept(from.size());
  const std::size_t added = shape.size() - from.size();
  std::vector<std::uint64_t> offsets = {0};  // the keys of all repeats, relative to the first
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d >= added) kept[d - added] = static_cast<std::int64_t>(d);
    const std::int64_t times = d < added || from[d - added] == 1 ? shape[d] : 1;
    checked_mul(checked_mul(times, std::ssize(offsets), "elements of a broadcast"),
                std::max<std::int64_t>(flat.count(), 1), "elements of a broadcast");
    const std::size_t known = offsets.size();
    if (times == 0) offsets.clear();
    for (std::int64_t i = 1; i < times; ++i)
      for (std::size_t k = 0; k < known; ++k)
        offsets.push_back(offsets[k] | result.fields.field(d, i));
  }
  std::vector<std::int64_t> all(from.size());
  for (std::size_t d = 0; d < all.size(); ++d) all[d] = static_cast<std::int64_t>(d);
  std::sort(offsets.begin(), offsets.end());
  result.entries.resize(flat.entries.size() * offsets.size());
  for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const FlatEntry<T>& entry = flat.entries[std::size_t(k)];
      std::uint64_t key = 0;
      for (std::size_t d = 0; d < from.size(); ++d)
        if (from[d] != 1) key |= result.fields.field(d + added, flat.fields.index(entry.key, d));
      for (std::size_t i = 0; i < offsets.size(); ++i)
        result.entries[std::size_t(k) * offsets.size() + i] = {key | offsets[i], entry.value};
    }
  });
  sort_entries(result.entries, 0, result.fields.bits(), executor);
  return result;
}

template <class T>
Flat<T> reshaped(Flat<T> flat, std::vector<std::int64_t> shape, Executor& executor) {
  Flat<T> result{Fields(std::move(shape)), std::move(flat.entries), flat.rest};
  const Fields &from = flat.fields, &to = result.fields;
  checked_elements(from.shape());
  const Positions position(from, from.shape());
  for_chunks(result.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      std::uint64_t& key = result.entries[std::size_t(k)].key;
      std::int64_t at = position(key);
      key = 0;
      for (std::size_t d = to.rank(); d-- > 0; at /= to.shape()[d])
        if (to.bits(d) > 0) key |= to.field(d, at % to.shape()[d]);
    }
  });
  return result;
}

namespace {

// The elements of one part of a merge: keys, and both operands side by side.
template <class T>
struct MergedPart {
  std::vector<std::uint64_t> keys;
  std::vector<T> left, right;

  void add(std::uint64_t key, T a, T b) {
    keys.push_back(key);
    left.push_back(a);
    right.push_back(b);
  }
};

template <class T>
using EntrySpan = std::span<const FlatEntry<T>>;

template <class T>
EntrySpan<T> between(const Flat<T>& flat, std::uint64_t first, const std::uint64_t* end) {
  const auto by_key = [](const FlatEntry<T>& entry, std::uint64_t key) { return entry.key < key; };
  const auto from = std::lower_bound(flat.entries.begin(), flat.entries.end(), first, by_key);
  const auto to = end == nullptr ? flat.entries.end()
                                 : std::lower_bound(from, flat.entries.end(), *end, by_key);
  return {flat.entries.data() + (from - flat.entries.begin()), std::size_t(to - from)};
}

template <class T>
MergedPart<T> merge_part(Binary op, EntrySpan<T> a, EntrySpan<T> b, T rest_a, T rest_b) {
  const bool both_only = op == Binary::Multiply && rest_a == T(0) && rest_b == T(0);
  MergedPart<T> part;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].key < b[j].key)) {
      if (!both_only) part.add(a[i].key, a[i].value, rest_b);
      ++i;
    } else if (i == a.size() || b[j].key < a[i].key) {
      if (!both_only) part.add(b[j].key, rest_a, b[j].value);
      ++j;
    } else {
      part.add(a[i].key, a[i].value, b[j].value);
      ++i;
      ++j;
    }
  }
  run<T>(op, part.left, part.right, part.left.data());
  return part;
}

}  // namespace

template <class T>
Flat<T> merged(Binary op, const Flat<T>& a, const Flat<T>& b, Executor& executor) {
  const Flat<T>& longer = a.entries.size() < b.entries.size() ? b : a;
  std::vector<std::uint64_t> starts = {0};
  for (std::int64_t k = kChunk; k < longer.count(); k += kChunk)
    starts.push_back(longer.entries[std::size_t(k)].key);
  std::vector<MergedPart<T>> parts(starts.size());
  executor.for_each(std::ssize(parts), [&](std::int64_t p) {
    const std::uint64_t* end = p + 1 == std::ssize(parts) ? nullptr : &starts[std::size_t(p) + 1];
    const std::uint64_t first = starts[std::size_t(p)];
    parts[std::size_t(p)] =
        merge_part<T>(op, between(a, first, end), between(b, first, end), a.rest, b.rest);
  });
  std::vector<std::size_t> begin = {0};
  for (const MergedPart<T>& part : parts) begin.push_back(begin.back() + part.keys.size());
  Flat<T> result{a.fields, {}, T(0)};
  result.entries.resize(begin.back());
  executor.for_each(std::ssize(parts), [&](std::int64_t p) {
    const MergedPart<T>& part = parts[std::size_t(p)];
    FlatEntry<T>* to = result.entries.data() + begin[std::size_t(p)];
    for (std::size_t i = 0; i < part.keys.size(); ++i) to[i] = {part.keys[i], part.left[i]};
  });
  result.rest = run_one(op, a.rest, b.rest);
  return result;
}

template <class T>
std::vector<T> dense_values(const Flat<T>& flat, Executor& executor) {
  std::vector<T> values(std::size_t(checked_elements(flat.fields.shape())), flat.rest);
  const Positions position(flat.fields, flat.fields.shape());
  for_chunks(flat.count(), executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const FlatEntry<T>& entry = flat.entries[std::size_t(k)];
      values[std::size_t(position(entry.key))] = entry.value;
    }
  });
  return values;
}

template <class T>
Flat<T> from_dense(const DenseArray<T>& array, Executor& executor) {
  check(array);
  Flat<T> flat{Fields({std::ssize(array.values)}), {}, T(0)};
  std::vector<std::int64_t> starts(std::size_t((std::ssize(array.values) + kChunk - 1) / kChunk) +
                                   1);
  for_chunks(std::ssize(array.values), executor, [&](std::int64_t begin, std::int64_t end) {
    starts[std::size_t(begin / kChunk) + 1] = std::count_if(
        array.values.begin() + begin, array.values.begin() + end, [](T v) { return !(v == T(0)); });
  });
  for (std::size_t c = 1; c < starts.size(); ++c) starts[c] += starts[c - 1];
  flat.entries.resize(std::size_t(starts.back()));
  for_chunks(std::ssize(array.values), executor, [&](std::int64_t begin, std::int64_t end) {
    auto to = std::size_t(starts[std::size_t(begin / kChunk)]);
    for (std::int64_t i = begin; i < end; ++i)
      if (const T v = array.values[std::size_t(i)]; !(v == T(0)))
        flat.entries[to++] = {static_cast<std::uint64_t>(i), v};
  });
  return reshaped(std::move(flat), array.shape, executor);
}

#define TESSERA_INSTANTIATE_FLAT_OPS(T)                                            \
  template Flat<T> permuted(Flat<T>, std::span<const std::int64_t>, Executor&);    \
  template Flat<T> repeated(Flat<T>, const std::vector<std::int64_t>&, Executor&); \
  template Flat<T> reshaped(Flat<T>, std::vector<std::int64_t>, Executor&);        \
  template Flat<T> merged(Binary, const Flat<T>&, const Flat<T>&, Executor&);      \
  template std::vector<T> dense_values(const Flat<T>&, Executor&);                 \
  template Flat<T> from_dense(const DenseArray<T>&, Executor&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_FLAT_OPS)

#undef TESSERA_INSTANTIATE_FLAT_OPS

}  // namespace tessera::arrays::internal
