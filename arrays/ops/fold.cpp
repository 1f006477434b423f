#include "tessera/arrays/ops/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/internal/flat_ops.hpp"
#include "tessera/arrays/internal/fold_states.hpp"
#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/arrays/internal/storage.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

using internal::Fields;
using internal::Flat;
using internal::FlatEntry;
using internal::for_chunks;
using internal::kChunk;
using internal::RawVector;

// The dimensions of an array, those that remain first.
struct Split {
  std::vector<std::int64_t> kept, folded;
  std::int64_t places = 1;  // elements that become one

  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> all = kept;
    all.insert(all.end(), folded.begin(), folded.end());
    return all;
  }
};

Split split_dims(const std::string& what, const std::vector<std::int64_t>& shape,
                 const std::vector<std::int64_t>& dims) {
  const std::int64_t rank = std::ssize(shape);
  std::vector<bool> is_folded(shape.size(), false);
  for (const std::int64_t given : dims) {
    const std::int64_t d = given < 0 ? given + rank : given;
    if (d < 0 || d >= rank || is_folded[std::size_t(d)])
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: dimension {} is not there or named twice; an array of {} has "
                              "dimensions 0..{}",
                              what, given, internal::shape_text(shape), rank - 1));
    is_folded[std::size_t(d)] = true;
  }
  Split split;
  for (std::int64_t d = 0; d < rank; ++d)
    (is_folded[std::size_t(d)] ? split.folded : split.kept).push_back(d);
  split.places = internal::checked_elements(internal::chosen(shape, split.folded));
  return split;
}

// A state of a fold, and the number of elements in it.
template <class F>
struct Counted {
  typename F::State state = F::start();
  std::int64_t count = 0;
};

// Folds into one state per place of the result. Every chunk has its own states, and the states of
// chunks are merged in their order.
template <class F, class T, class R>
void fold_into_table(const Flat<T>& flat, const Split& split, const Fields& fields,
                     std::int64_t places, Flat<R>& result, Executor& executor) {
  // With more tables than this, merging them would take longer than filling them.
  const std::int64_t tables = std::clamp<std::int64_t>(flat.count() / (4 * places + kChunk), 1, 64);
  const std::int64_t per_table = (flat.count() + tables - 1) / tables;
  const internal::Repack repack(flat.fields, split.kept, fields);
  const internal::Positions position(fields, fields.shape());
  std::vector<std::vector<Counted<F>>> states(static_cast<std::size_t>(tables));
  executor.for_each(tables, [&](std::int64_t t) {
    std::vector<Counted<F>>& mine = states[std::size_t(t)];
    mine.resize(std::size_t(places));
    const std::int64_t end = std::min(flat.count(), (t + 1) * per_table);
    for (std::int64_t k = t * per_table; k < end; ++k) {
      const FlatEntry<T>& entry = flat.entries[std::size_t(k)];
      Counted<F>& at = mine[std::size_t(position(repack(entry.key)))];
      F::add(at.state, entry.value);
      ++at.count;
    }
  });
  std::size_t i = 0;
  internal::for_each_index(fields.shape(), [&](std::span<const std::int64_t> index) {
    Counted<F>& sum = states[0][i];
    for (std::size_t t = 1; t < states.size(); ++t) {
      F::merge(sum.state, states[t][i].state);
      sum.count += states[t][i].count;
    }
    ++i;
    if (sum.count == 0) return;
    std::uint64_t key = 0;
    for (std::size_t d = 0; d < index.size(); ++d) key |= fields.field(d, index[d]);
    result.entries.push_back({key, F::finish(sum.state, split.places - sum.count, split.places)});
  });
}

// Calls group(key, entries) for the runs of entries of one place of the result. `flat` is sorted by
// those places, which are the uppermost bits of its keys, from `shift` on. Chunks run in parallel;
// a run belongs to the chunk in which it begins, and collect(chunk) gives its results.
template <class T, class R, class Group>
void for_groups(const Flat<T>& flat, int shift, Flat<R>& result, Executor& executor,
                Group&& group) {
  const auto place_of = [shift](const FlatEntry<T>& e) { return shift == 64 ? 0 : e.key >> shift; };
  const std::int64_t count = flat.count();
  std::vector<std::vector<FlatEntry<R>>> parts(std::size_t((count + kChunk - 1) / kChunk));
  for_chunks(count, executor, [&](std::int64_t begin, std::int64_t end) {
    std::vector<FlatEntry<R>>& part = parts[std::size_t(begin / kChunk)];
    const FlatEntry<T>* all = flat.entries.data();
    while (begin > 0 && begin < end && place_of(all[begin]) == place_of(all[begin - 1])) ++begin;
    while (begin < end) {
      std::int64_t last = begin;
      while (last < count && place_of(all[last]) == place_of(all[begin])) ++last;
      part.push_back(
          {place_of(all[begin]), group(std::span(all + begin, std::size_t(last - begin)))});
      begin = last;
    }
  });
  for (const auto& part : parts)
    result.entries.insert(result.entries.end(), part.begin(), part.end());
}

// Returns the array with every element stored, unless the others are zero.
template <class T>
Flat<T> with_zero_rest(Flat<T> flat, Executor& executor) {
  if (flat.rest == T(0)) return flat;
  const std::vector<T> values = internal::dense_values(flat, executor);
  flat.entries.clear();
  flat.rest = T(0);
  std::size_t at = 0;
  internal::for_each_index(flat.fields.shape(), [&](std::span<const std::int64_t> index) {
    std::uint64_t key = 0;
    for (std::size_t d = 0; d < index.size(); ++d) key |= flat.fields.field(d, index[d]);
    flat.entries.push_back({key, values[at++]});
  });
  return flat;
}

template <class T>
void require_fold(Fold fold, std::int64_t places) {
  if (IntegerElement<T> && (fold == Fold::Mean || fold == Fold::Norm2))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} of {} gives no integers; cast to double first", to_string(fold),
                            element_name<T>()));
  if (places == 0 && fold != Fold::Sum && fold != Fold::Norm1 && fold != Fold::Norm2)
    throw Error(ErrorCode::InvalidArgument,
                to_string(fold) +
                    ": there is no element to choose from; the folded dimensions "
                    "must have a length of at least 1");
}

template <class T>
Flat<SumOf<T>> fold_flat(Fold fold, Flat<T> flat, const std::vector<std::int64_t>& dims,
                         Executor& executor) {
  using R = SumOf<T>;
  flat = with_zero_rest(std::move(flat), executor);
  const Split split = split_dims(to_string(fold), flat.fields.shape(), dims);
  require_fold<T>(fold, split.places);
  Flat<R> result{Fields(internal::chosen(flat.fields.shape(), split.kept)), {}, R(0)};
  const Fields fields = result.fields;
  if (flat.count() == 0) return result;
  const bool fits_table =
      fields.bits() < 40 && internal::checked_elements(fields.shape()) <= flat.count() / 2 + 64;
  internal::with_fold<T>(fold, [&](auto chosen) {
    using F = decltype(chosen);
    if (fits_table)
      return fold_into_table<F>(flat, split, fields, internal::checked_elements(fields.shape()),
                                result, executor);
    const Flat<T> sorted = internal::permuted(std::move(flat), split.order(), executor);
    const int shift = sorted.fields.bits() - fields.bits();
    for_groups(sorted, shift, result, executor, [&](std::span<const FlatEntry<T>> group) {
      typename F::State state = F::start();
      for (const FlatEntry<T>& entry : group) F::add(state, entry.value);
      return F::finish(state, split.places - std::ssize(group), split.places);
    });
  });
  return result;
}

// Returns the index of the chosen element among `places`; at(i) is the index of entry i.
template <class T, class At>
std::int64_t picked(Pick pick, std::span<const FlatEntry<T>> entries, std::int64_t places,
                    At&& at) {
  using W = internal::Wide<T>;
  const auto worth = [pick](T value) {
    const W v = internal::widen(value);
    if (pick == Pick::Max) return v;
    if (pick == Pick::Min) return W(-v);
    return v < 0 ? W(-v) : v;
  };
  const auto beats = [](W a, W b) {
    if constexpr (std::floating_point<W>)
      if (std::isnan(b) && !std::isnan(a)) return true;
    return a > b;
  };
  std::int64_t best_at = 0, gap = 0;  // gap: the first index that is not stored
  W best = W(0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::int64_t index = at(entries[i]);
    gap += gap == index;
    const W value = worth(entries[i].value);
    if (i != 0 && !beats(value, best)) continue;
    best = value;
    best_at = index;
  }
  if (gap == places) return best_at;
  if (beats(W(0), best) || (!beats(best, W(0)) && gap < best_at)) return gap;
  return best_at;
}

}  // namespace

std::string to_string(Fold fold) {
  static constexpr std::string_view kNames[] = {"sum",    "mean",   "min",     "max",
                                                "norm_1", "norm_2", "norm_max"};
  return std::string(kNames[int(fold)]);
}

template <class X>
CooTensor<SumOf<typename X::Value>> fold(Fold fold, const X& x,
                                         const std::vector<std::int64_t>& dims,
                                         Executor& executor) {
  using T = typename X::Value;
  return internal::tensor_of(fold_flat<T>(fold, internal::flat_of(x, executor), dims, executor),
                             to_string(fold), executor);
}

template <class X>
SumOf<typename X::Value> fold_all(Fold fold, const X& x, Executor& executor) {
  using T = typename X::Value;
  Flat<T> flat = internal::flat_of(x, executor);
  std::vector<std::int64_t> dims(flat.fields.rank());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<std::int64_t>(d);
  const auto result = fold_flat<T>(fold, std::move(flat), dims, executor);
  return result.entries.empty() ? SumOf<T>(0) : result.entries.front().value;
}

template <class X>
CooTensor<std::int64_t> pick(Pick pick, const X& x, std::int64_t dim, Executor& executor) {
  using T = typename X::Value;
  Flat<T> flat = with_zero_rest(internal::flat_of(x, executor), executor);
  const Split split = split_dims("pick", flat.fields.shape(), {dim});
  if (split.places == 0)
    throw Error(ErrorCode::InvalidArgument,
                "pick: there is no element to choose from; the dimension has length 0");
  Flat<std::int64_t> result{Fields(internal::chosen(flat.fields.shape(), split.kept)), {}, 0};
  const Flat<T> sorted = internal::permuted(std::move(flat), split.order(), executor);
  const std::size_t last = sorted.fields.rank() - 1;
  const int shift = sorted.fields.bits() - result.fields.bits();
  for_groups(sorted, shift, result, executor, [&](std::span<const FlatEntry<T>> group) {
    return picked<T>(pick, group, split.places, [&](const FlatEntry<T>& entry) {
      return sorted.fields.index(entry.key, last);
    });
  });
  return internal::tensor_of(std::move(result), "pick", executor);
}

template <class X>
std::optional<std::int64_t> pick_all(Pick pick, const X& x, Executor& executor) {
  using T = typename X::Value;
  const Flat<T> flat = with_zero_rest(internal::flat_of(x, executor), executor);
  const std::int64_t places = internal::checked_elements(flat.fields.shape());
  if (places == 0) return std::nullopt;
  const internal::Positions position(flat.fields, flat.fields.shape());
  return picked<T>(pick, flat.entries, places,
                   [&](const FlatEntry<T>& entry) { return position(entry.key); });
}

#define TESSERA_INSTANTIATE_FOLD(X, T)                                                   \
  template CooTensor<SumOf<T>> fold(Fold, const X<T>&, const std::vector<std::int64_t>&, \
                                    Executor&);                                          \
  template SumOf<T> fold_all(Fold, const X<T>&, Executor&);                              \
  template CooTensor<std::int64_t> pick(Pick, const X<T>&, std::int64_t, Executor&);     \
  template std::optional<std::int64_t> pick_all(Pick, const X<T>&, Executor&);
#define TESSERA_INSTANTIATE_FOLDS(T)     \
  TESSERA_INSTANTIATE_FOLD(CooTensor, T) \
  TESSERA_INSTANTIATE_FOLD(SlicedCsr, T) \
  TESSERA_INSTANTIATE_FOLD(SlicedCsc, T) \
  TESSERA_INSTANTIATE_FOLD(MappedArray, T)

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_FOLDS)

#undef TESSERA_INSTANTIATE_FOLD
#undef TESSERA_INSTANTIATE_FOLDS

}  // namespace tessera::arrays
