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

#include "tessera/codelets/internal/fast/one_column.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The elements of a vector without gaps that a list of columns names.
template <class In>
struct VectorElements {
  const In* in;
  const std::uint32_t* columns;

  HWY_INLINE const In* operator()(std::int64_t i) const { return in + columns[i]; }

  // Reads two columns with one load: loads are the limit.
  HWY_INLINE std::array<const In*, 4> four(std::int64_t i) const {
    std::uint64_t two[2];
    std::memcpy(two, columns + i, sizeof two);
    return {in + static_cast<std::uint32_t>(two[0]), in + (two[0] >> 32),
            in + static_cast<std::uint32_t>(two[1]), in + (two[1] >> 32)};
  }

  // Values and columns are two streams, which the hardware follows too late.
  HWY_INLINE void ask_ahead(const In* values, std::int64_t i) const {
    constexpr std::int64_t kAhead = 512;  // entries
    prefetch_beyond(values, (i + kAhead) * std::int64_t{sizeof(In)});
    prefetch_beyond(columns, (i + kAhead) * std::int64_t{sizeof(std::uint32_t)});
  }
};

template <class In>
HWY_INLINE void add_to_row(const ListedSums<In>& args, std::size_t row, float sum) {
  float& out = args.out[static_cast<std::int64_t>(row) * args.out_stride];
  out = (args.replaces ? 0.0f : out) + sum;
}

#if HWY_TARGET != HWY_SCALAR

// The lanes of terms that are collected, and of rows of products, which are added up in wider
// vectors: fewer masks and loads.
inline constexpr std::size_t kTermLanes = kColumnLanes<float>, kTermParts = kColumnParts<float>;
inline constexpr std::size_t kRowLanes = std::min<std::size_t>(kNativeLanes, kSumLanes);
inline constexpr std::size_t kRowParts = kSumLanes / kRowLanes;

// Rows of so many terms are added together, and so many terms of all of them. Without masked loads
// a row of more terms than lanes would read values behind the last one of the matrix.
inline constexpr std::int64_t kMostTermsOfRow = kMasksLoads ? 64 : kSumLanes, kMostTerms = 1024;

// Some rows, and the most terms that one of them has.
struct ShortRows {
  std::size_t first, end;
  std::int64_t longest = 0;

  // One term in each lane: a product is that of a sum that begins with 0.
  bool have_products() const { return longest <= kSumLanes; }
};

// Returns the most terms that one of some rows has.
HWY_INLINE std::int64_t most_terms(const std::int64_t* begin, std::size_t rows) {
  std::int64_t most = 0;
  for (std::size_t row = 0; row < rows; ++row) most = std::max(most, begin[row + 1] - begin[row]);
  return most;
}

// Returns the rows from `first` on that can be added together, by the same steps. Rows are looked
// at some at a time, as the processor would not foresee which of them is the longest: 0.7 times the
// time of one after the other with 8 terms a row (Zen 5).
HWY_INLINE ShortRows short_rows(const ListedSums<float>& args, std::size_t first) {
  constexpr std::size_t kAtOnce = 16;
  static_assert(kAtOnce * kMostTermsOfRow <= kMostTerms);
  const std::int64_t* const begin = args.row_begin.data();
  const std::size_t count = args.row_begin.size() - 1;
  ShortRows rows{first, first};
  if (most_terms(begin + first, 1) > kMostTermsOfRow) return rows;
  while (rows.end < count) {
    const std::size_t end = std::min(rows.end + kAtOnce, count);
    const ShortRows more{rows.end, end, most_terms(begin + rows.end, end - rows.end)};
    if (more.longest > kMostTermsOfRow || begin[end] - begin[first] > kMostTerms) break;
    if (rows.end > first && more.have_products() != rows.have_products()) break;
    rows = {first, end, std::max(rows.longest, more.longest)};
  }
  if (rows.end > first) return rows;
  while (most_terms(begin + rows.end, 1) <= kMostTermsOfRow) ++rows.end;  // to the long row
  rows.longest = most_terms(begin + first, rows.end - first);
  return rows;
}

// The lanes of part `p` of a row of `count` terms that belong to the row.
template <std::size_t kLanes>
HWY_INLINE auto lanes_below(std::int64_t count, std::size_t p) {
  const std::int64_t own = count - static_cast<std::int64_t>(p * kLanes);
  const std::int64_t if_positive = ~(own >> 63);  // std::max becomes a jump that is not foreseen
  return hn::FirstN(Floats<kLanes>(), static_cast<std::size_t>(own & if_positive));
}

// Adds up the products of rows of at most kParts vectors, which follow one another, four rows at
// once. What comes after a row in its last vector is another row's, or room of kSumLanes floats
// behind the last row.
template <std::size_t kParts>
HWY_INLINE void add_products(const ListedSums<float>& args, const ShortRows& rows,
                             const float* products) {
  constexpr std::size_t kRows = 4;
  FloatVector<4> folded[kRows];
  const auto fold = [&](std::size_t row, std::size_t r) HWY_ATTR {
    const std::int64_t count = args.row_begin[row + 1] - args.row_begin[row];
    FloatVector<kRowLanes> sums[kParts];
    for (std::size_t p = 0; p < kParts; ++p)
      sums[p] = hn::IfThenElseZero(lanes_below<kRowLanes>(count, p),
                                   load_lanes<kRowLanes>(products + p * kRowLanes));
    products += count;
    folded[r] = fold_parts<kRowLanes>(sums);
  };
  float of_rows[kRows];
  std::size_t row = rows.first;
  for (; row + kRows <= rows.end; row += kRows) {
    for (std::size_t r = 0; r < kRows; ++r) fold(row + r, r);
    if (args.replaces && args.out_stride == 1) {
      hn::StoreU(finish_four(folded), Floats<4>(), args.out + row);
      continue;
    }
    hn::StoreU(finish_four(folded), Floats<4>(), of_rows);
    for (std::size_t r = 0; r < kRows; ++r) add_to_row(args, row + r, of_rows[r]);
  }
  for (; row < rows.end; ++row) {
    for (auto& each : folded) each = hn::Zero(Floats<4>());
    fold(row, 0);
    hn::StoreU(finish_four(folded), Floats<4>(), of_rows);
    add_to_row(args, row, of_rows[0]);
  }
}

// Does the same for rows of any length, from what their values are multiplied with.
HWY_INLINE void add_terms(const ListedSums<float>& args, const ShortRows& rows,
                          const float* terms) {
  for (std::size_t row = rows.first; row < rows.end; ++row) {
    const float* values = args.values + args.row_begin[row];
    std::int64_t left = args.row_begin[row + 1] - args.row_begin[row];
    FloatVector<kTermLanes> sums[kTermParts];
    for (auto& sum : sums) sum = hn::Zero(Floats<kTermLanes>());
    for (; left >= kSumLanes; left -= kSumLanes, values += kSumLanes, terms += kSumLanes)
      for (std::size_t p = 0; p < kTermParts; ++p)
        sums[p] = add_product_lanes(sums[p], load_lanes<kTermLanes>(values + p * kTermLanes),
                                    load_lanes<kTermLanes>(terms + p * kTermLanes));
    for (std::size_t p = 0; p < kTermParts; ++p) {
      if (left <= static_cast<std::int64_t>(p * kTermLanes)) break;
      const auto some = lanes_below<kTermLanes>(left, p);
      const auto factors = hn::MaskedLoad(some, Floats<kTermLanes>(), values + p * kTermLanes);
      sums[p] = add_product_lanes(
          sums[p], factors,
          hn::IfThenElseZero(some, load_lanes<kTermLanes>(terms + p * kTermLanes)));
    }
    terms += left;
    add_to_row(args, row, finish_lanes<kTermLanes>(sums));
  }
}

// Collects what `count` values are multiplied with, or the products.
template <bool kMultiplies>
HWY_INLINE void collect_terms(const float* values, VectorElements<float> address,
                              std::int64_t count, float* terms) {
  std::int64_t i = 0;
  for (; i + std::int64_t{kTermLanes} <= count; i += kTermLanes) {
    auto some = collect<kTermLanes, float>(address, i);
    if constexpr (kMultiplies) some = hn::Mul(some, load_lanes<kTermLanes>(values + i));
    hn::StoreU(some, Floats<kTermLanes>(), terms + i);
  }
  for (; i < count; ++i) terms[i] = kMultiplies ? *address(i) * values[i] : *address(i);
}

// Adds the short rows from `first` on, and returns the first row after them. Rows of a list have
// any lengths, of which the processor foresees few: all terms are collected first, and then every
// row is added up with the same steps.
HWY_INLINE std::size_t gather_short_rows(const ListedSums<float>& args, std::size_t first) {
  const ShortRows rows = short_rows(args, first);
  const std::int64_t begin = args.row_begin[first], count = args.row_begin[rows.end] - begin;
  const VectorElements<float> address{args.in, args.columns + begin};
  alignas(64) float terms[kMostTerms + kSumLanes];
  std::fill_n(terms + count, kSumLanes, 0.0f);
  if (rows.have_products())
    collect_terms<true>(args.values + begin, address, count, terms);
  else
    collect_terms<false>(args.values + begin, address, count, terms);
  if (!rows.have_products())
    add_terms(args, rows, terms);
  else if (rows.longest <= std::int64_t{kRowLanes})
    add_products<1>(args, rows, terms);
  else
    add_products<kRowParts>(args, rows, terms);
  return rows.end;
}

#endif

template <class In>
HWY_INLINE std::size_t gather_short_rows(const ListedSums<In>&, std::size_t first) {
  return first;
}

template <class In>
HWY_INLINE void gather_listed(const ListedSums<In>& args) {
  for (std::size_t row = 0; row + 1 < args.row_begin.size();) {
    if (const std::size_t end = gather_short_rows(args, row); end > row) {
      row = end;
      continue;
    }
    const std::int64_t begin = args.row_begin[row], count = args.row_begin[row + 1] - begin;
    add_to_row(args, row,
               one_column_lanes(args.values + begin, count,
                                VectorElements<In>{args.in, args.columns + begin}));
    ++row;
  }
}

// Adds the terms of every row to the sums that its columns name.
template <class In>
HWY_INLINE void scatter_listed(const ListedSums<In>& args) {
  float* const out = args.out;  // in a register: a store might change what `args` names
  const std::int64_t stride = args.out_stride;
  for (std::size_t r = 0; r + 1 < args.row_begin.size(); ++r) {
    const auto factor = load_lanes<1>(args.in + r);
    const std::int64_t end = args.row_begin[r + 1];
    for (std::int64_t i = args.row_begin[r]; i < end; ++i) {
      float* const to = out + args.columns[i] * stride;
      const auto value = load_lanes<1>(args.values + i);
      hn::StoreU(add_product_lanes(load_lanes<1>(to), value, factor), Floats<1>(), to);
    }
  }
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
