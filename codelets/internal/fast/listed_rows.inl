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

inline constexpr std::size_t kRowLanes = kColumnLanes<float>, kRowParts = kColumnParts<float>;

// Rows of so many terms are added together, and so many terms of all of them. Without masked loads
// a row of more terms than lanes would read values behind the last one of the matrix.
inline constexpr std::int64_t kMostTermsOfRow = kMasksLoads ? 64 : kSumLanes, kMostTerms = 1024;

// Some rows, and the most terms that one of them has.
struct ShortRows {
  std::size_t first, end;
  std::int64_t longest = 0;
};

// Returns the rows from `first` on that can be added together.
HWY_INLINE ShortRows short_rows(const ListedSums<float>& args, std::size_t first) {
  ShortRows rows{first, first};
  for (; rows.end + 1 < args.row_begin.size(); ++rows.end) {
    const std::int64_t end = args.row_begin[rows.end + 1];
    const std::int64_t count = end - args.row_begin[rows.end];
    if (count > kMostTermsOfRow || end - args.row_begin[first] > kMostTerms) break;
    rows.longest = std::max(rows.longest, count);
  }
  return rows;
}

// The lanes of part `p` of a row of `count` terms that belong to the row.
HWY_INLINE auto lanes_below(std::int64_t count, std::size_t p) {
  const std::int64_t own = count - static_cast<std::int64_t>(p * kRowLanes);
  return hn::FirstN(Floats<kRowLanes>(),
                    static_cast<std::size_t>(std::max<std::int64_t>(own, 0)));
}
HWY_INLINE FloatVector<kRowLanes> load_part(const float* from, std::size_t p) {
  return hn::LoadU(Floats<kRowLanes>(), from + p * kRowLanes);
}

// Adds up the products of rows of at most kParts vectors, which follow one another, of four rows at
// once. What comes after a row in its last vector is another row's, or room of kSumLanes floats
// behind the last row.
template <std::size_t kParts>
HWY_INLINE void add_products(const ListedSums<float>& args, const ShortRows& rows,
                             const float* products) {
  constexpr std::size_t kRows = 4;
  for (std::size_t row = rows.first; row < rows.end; row += kRows) {
    FloatVector<4> folded[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::int64_t* const begin = &args.row_begin[std::min(row + r, rows.end - 1)];
      const std::int64_t count = begin[1] - begin[0];
      FloatVector<kRowLanes> sums[kParts];
      for (std::size_t p = 0; p < kParts; ++p)
        sums[p] = hn::IfThenElseZero(lanes_below(count, p), load_part(products, p));
      if (row + r + 1 < rows.end) products += count;
      folded[r] = fold_parts<kRowLanes>(sums);
    }
    const auto sums = finish_four(folded);
    if (args.replaces && args.out_stride == 1 && row + kRows <= rows.end) {
      hn::StoreU(sums, Floats<4>(), args.out + row);
      continue;
    }
    float of_rows[kRows];
    hn::StoreU(sums, Floats<4>(), of_rows);
    for (std::size_t r = 0; r < kRows && row + r < rows.end; ++r)
      add_to_row(args, row + r, of_rows[r]);
  }
}

// Does the same for rows of any length, from what their values are multiplied with.
HWY_INLINE void add_terms(const ListedSums<float>& args, const ShortRows& rows,
                          const float* terms) {
  for (std::size_t row = rows.first; row < rows.end; ++row) {
    const float* values = args.values + args.row_begin[row];
    std::int64_t left = args.row_begin[row + 1] - args.row_begin[row];
    FloatVector<kRowLanes> sums[kRowParts];
    for (auto& sum : sums) sum = hn::Zero(Floats<kRowLanes>());
    for (; left >= kSumLanes; left -= kSumLanes, values += kSumLanes, terms += kSumLanes)
      for (std::size_t p = 0; p < kRowParts; ++p)
        sums[p] = add_product_lanes(sums[p], load_part(values, p), load_part(terms, p));
    for (std::size_t p = 0; p < kRowParts; ++p) {
      if (left <= static_cast<std::int64_t>(p * kRowLanes)) break;
      const auto some = lanes_below(left, p);
      const auto factors = hn::MaskedLoad(some, Floats<kRowLanes>(), values + p * kRowLanes);
      sums[p] = add_product_lanes(sums[p], factors, hn::IfThenElseZero(some, load_part(terms, p)));
    }
    terms += left;
    add_to_row(args, row, finish_lanes<kRowLanes>(sums));
  }
}

// Adds the short rows from `first` on, and returns the first row after them. Rows of a list have
// any lengths, of which the processor foresees few: all terms are collected first, and then every
// row is added up with the same steps.
HWY_INLINE std::size_t gather_short_rows(const ListedSums<float>& args, std::size_t first) {
  const ShortRows rows = short_rows(args, first);
  const std::int64_t begin = args.row_begin[first], count = args.row_begin[rows.end] - begin;
  const VectorElements<float> address{args.in, args.columns + begin};
  const float* const values = args.values + begin;
  // One term in each lane: its product is that of a sum that begins with 0.
  const bool multiplies = rows.longest <= kSumLanes;
  alignas(64) float terms[kMostTerms + kSumLanes];
  std::int64_t i = 0;
  for (; i + std::int64_t{kRowLanes} <= count; i += kRowLanes) {
    auto some = collect<kRowLanes, float>(address, i);
    if (multiplies) some = hn::Mul(some, load_part(values + i, 0));
    hn::StoreU(some, Floats<kRowLanes>(), terms + i);
  }
  for (; i < count; ++i) terms[i] = multiplies ? *address(i) * values[i] : *address(i);
  std::fill_n(terms + count, kSumLanes, 0.0f);
  if (!multiplies)
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

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
