// Sums of rows that a list of columns names, for a vector without gaps. This is not a header, see
// lanes.inl.
#if defined(TESSERA_CODELETS_LISTED_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_LISTED_ROWS_INL
#undef TESSERA_CODELETS_LISTED_ROWS_INL
#else
#define TESSERA_CODELETS_LISTED_ROWS_INL
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "tessera/codelets/internal/fast/one_column.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The elements of a vector without gaps that a list of columns of 32 bits names.
template <class In>
struct VectorElements {
  const In* in;
  const std::byte* words;

  HWY_INLINE std::uint32_t column(std::int64_t i) const {
    std::uint32_t column;
    std::memcpy(&column, words + i * std::int64_t{sizeof column}, sizeof column);
    return column;
  }
  HWY_INLINE const In* operator()(std::int64_t i) const { return in + column(i); }

  // Reads two columns with one load: loads are the limit.
  HWY_INLINE std::array<const In*, 4> four(std::int64_t i) const {
    std::uint64_t two[2];
    std::memcpy(two, words + i * std::int64_t{sizeof(std::uint32_t)}, sizeof two);
    return {in + static_cast<std::uint32_t>(two[0]), in + (two[0] >> 32),
            in + static_cast<std::uint32_t>(two[1]), in + (two[1] >> 32)};
  }

  // Values and columns are two streams, which the hardware follows too late.
  HWY_INLINE void ask_ahead(const In* values, std::int64_t i) const {
    constexpr std::int64_t kAhead = 512;  // entries
    prefetch_beyond(values, (i + kAhead) * std::int64_t{sizeof(In)});
    prefetch_beyond(words, (i + kAhead) * std::int64_t{sizeof(std::uint32_t)});
  }
};

#if HWY_TARGET != HWY_SCALAR

// Rows of so many terms are added together, and so many terms of all of them. Without masked loads
// a row of more terms than lanes would read values behind the last one of the matrix.
inline constexpr std::int64_t kMostTermsOfRow = kMasksLoads ? 64 : kSumLanes, kMostTerms = 1024;

// The lanes of part `p` of a row of `count` terms that belong to the row.
HWY_INLINE auto lanes_below(std::int64_t count, std::size_t p) {
  const std::int64_t own = count - static_cast<std::int64_t>(p * kColumnLanes);
  return hn::FirstN(Floats<kColumnLanes>(),
                    static_cast<std::size_t>(std::max<std::int64_t>(own, 0)));
}
HWY_INLINE FloatVector<kColumnLanes> load_part(const float* from, std::size_t p) {
  return hn::LoadU(Floats<kColumnLanes>(), from + p * kColumnLanes);
}
HWY_INLINE void add_to_row(const ElementSums<float>& args, const TermRow& row, float sum) {
  float& out = args.out[row.row * args.out_stride];
  out = (args.replaces ? 0.0f : out) + sum;
}

// Adds up the products of rows of at most kParts vectors, which follow one another. What comes
// after a row in its last vector is another row's, or room of kSumLanes floats behind the last row.
template <std::size_t kParts>
HWY_INLINE void add_products(const ElementSums<float>& args, std::span<const TermRow> rows,
                             const float* products) {
  for (const TermRow& row : rows) {
    FloatVector<kColumnLanes> sums[kParts];
    for (std::size_t p = 0; p < kParts; ++p)
      sums[p] = hn::IfThenElseZero(lanes_below(row.count, p), load_part(products, p));
    products += row.count;
    add_to_row(args, row, finish_lanes<kParts>(sums));
  }
}

// Does the same for rows of any length, from what their values are multiplied with.
HWY_INLINE void add_terms(const ElementSums<float>& args, std::span<const TermRow> rows,
                          const float* terms) {
  for (const TermRow& row : rows) {
    const float* values = args.values + row.value;
    std::int64_t left = row.count;
    FloatVector<kColumnLanes> sums[kColumnParts];
    for (auto& sum : sums) sum = hn::Zero(Floats<kColumnLanes>());
    for (; left >= kSumLanes; left -= kSumLanes, values += kSumLanes, terms += kSumLanes)
      for (std::size_t p = 0; p < kColumnParts; ++p)
        sums[p] = add_product_lanes(sums[p], load_part(values, p), load_part(terms, p));
    for (std::size_t p = 0; p < kColumnParts; ++p) {
      if (left <= static_cast<std::int64_t>(p * kColumnLanes)) break;
      const auto some = lanes_below(left, p);
      const auto factors = hn::MaskedLoad(some, Floats<kColumnLanes>(), values + p * kColumnLanes);
      sums[p] = add_product_lanes(sums[p], factors, hn::IfThenElseZero(some, load_part(terms, p)));
    }
    terms += left;
    add_to_row(args, row, finish_lanes(sums));
  }
}

// Some rows whose values and columns follow one another.
struct ShortRows {
  std::span<const TermRow> rows;
  std::int64_t terms = 0, longest = 0;  // of all rows, and of one
};

// Returns the rows from `first` on that can be added together.
HWY_INLINE ShortRows short_rows(const ElementSums<float>& args, std::size_t first) {
  const TermRow& row = args.rows[first];
  ShortRows found;
  std::size_t end = first;
  for (; end < args.rows.size(); ++end) {
    const TermRow& next = args.rows[end];
    if (next.count > kMostTermsOfRow || found.terms + next.count > kMostTerms) break;
    if (next.value != row.value + found.terms ||
        next.words != row.words + found.terms * std::int64_t{sizeof(std::uint32_t)})
      break;
    found.terms += next.count;
    found.longest = std::max(found.longest, next.count);
  }
  found.rows = args.rows.subspan(first, end - first);
  return found;
}

// Adds the short rows from `first` on, and returns the first row after them. Rows of a list have
// any lengths, of which the processor foresees few: all terms are collected first, and then every
// row is added up with the same steps.
HWY_INLINE std::size_t gather_short_rows(const ElementSums<float>& args, std::size_t first) {
  const auto [rows, count, longest] = short_rows(args, first);
  if (rows.empty()) return first;
  const VectorElements<float> address{args.in, rows.front().words};
  float terms[kMostTerms + kSumLanes];
  std::int64_t i = 0;
  for (; i + std::int64_t{kColumnLanes} <= count; i += kColumnLanes)
    hn::StoreU(collect<kColumnLanes, float>(address, i), Floats<kColumnLanes>(), terms + i);
  for (; i < count; ++i) terms[i] = *address(i);
  std::fill_n(terms + count, kSumLanes, 0.0f);
  if (longest > kSumLanes) {
    add_terms(args, rows, terms);
    return first + rows.size();
  }
  // One term in each lane: its product is that of a sum that begins with 0.
  const float* const values = args.values + rows.front().value;
  for (i = 0; i < count; ++i) terms[i] *= values[i];
  if (longest <= std::int64_t{kColumnLanes})
    add_products<1>(args, rows, terms);
  else
    add_products<kColumnParts>(args, rows, terms);
  return first + rows.size();
}

#endif

template <class In>
HWY_INLINE std::size_t gather_short_rows(const ElementSums<In>&, std::size_t first) {
  return first;
}

template <class In>
HWY_INLINE void gather_vector(const ElementSums<In>& args) {
  for (std::size_t r = 0; r < args.rows.size();) {
    if (const std::size_t end = gather_short_rows(args, r); end > r) {
      r = end;
      continue;
    }
    const TermRow& row = args.rows[r++];
    float& out = args.out[row.row * args.out_stride];
    const float sum = one_column_lanes(args.values + row.value, row.count,
                                       VectorElements<In>{args.in, row.words});
    out = (args.replaces ? 0.0f : out) + sum;
  }
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
