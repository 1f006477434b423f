// transpose() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/transposes.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "tessera/codelets/transpose.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A matrix with contiguous rows and its transpose.
template <class T>
struct Transposed {
  const T* from;
  std::int64_t from_stride;
  T* to;
  std::int64_t to_stride;

  HWY_INLINE const T* at(std::int64_t r, std::int64_t c) const {
    return from + r * from_stride + c;
  }
  HWY_INLINE T* target(std::int64_t r, std::int64_t c) const { return to + c * to_stride + r; }

  HWY_INLINE void one_by_one(std::int64_t first_row, std::int64_t rows, std::int64_t first_col,
                             std::int64_t cols) const {
    for (std::int64_t c = first_col; c < first_col + cols; ++c)
      for (std::int64_t r = first_row; r < first_row + rows; ++r) *target(r, c) = *at(r, c);
  }
};

#if HWY_TARGET != HWY_SCALAR

// A square of so many rows and columns fits in vectors of 16 bytes.
inline constexpr std::size_t kBytes = 16;
template <class T>
inline constexpr std::size_t kSide = kBytes / sizeof(T);

// The most squares, one below the other, that are transposed at once: vectors then hold a column of
// all of them, and with 64 bytes each store fills a cache line (256 x 256 floats in the
// second-level cache: 0.75 of the time of single squares).
inline constexpr std::size_t kMostSquares = HWY_TARGET == HWY_AVX3   ? 4
                                            : HWY_TARGET == HWY_AVX2 ? 2
                                                                     : 1;

template <std::size_t kSquares>
using Words16 = hn::Simd<std::uint16_t, kSquares * kBytes / 2, 0>;
template <std::size_t kSquares>
using Words32 = hn::Simd<std::uint32_t, kSquares * kBytes / 4, 0>;
template <std::size_t kSquares>
using Words64 = hn::Simd<std::uint64_t, kSquares * kBytes / 8, 0>;

template <std::size_t kSquares, class T>
using WordsOf = std::conditional_t<sizeof(T) == 2, Words16<kSquares>, Words32<kSquares>>;
template <std::size_t kSquares, class T>
using VectorOf = hn::Vec<WordsOf<kSquares, T>>;

// Loads 16 bytes of one row of each square: the rows are `step` elements apart. Inserting them from
// memory takes no shuffle.
template <std::size_t kSquares, class T>
HWY_INLINE VectorOf<kSquares, T> load_rows(const T* from, std::int64_t step) {
  const WordsOf<kSquares, T> d;
  if constexpr (kSquares == 1) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<WordsOf<1, T>>*>(from));
  } else {
    const auto low = load_rows<kSquares / 2>(from, step);
    const auto high = load_rows<kSquares / 2>(from + std::int64_t(kSquares / 2) * step, step);
    return hn::Combine(d, high, low);
  }
}
#if HWY_TARGET == HWY_AVX3
// Two halves of a wide vector would be joined by a shuffle.
HWY_INLINE __m512i insert_rows(const void* a, const void* b, const void* c, const void* d) {
  const auto load = [](const void* from)
                        HWY_ATTR { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
  const __m512i one = _mm512_castsi128_si512(load(a));
  const __m512i two = _mm512_inserti32x4(one, load(b), 1);
  return _mm512_inserti32x4(_mm512_inserti32x4(two, load(c), 2), load(d), 3);
}
#endif

template <std::size_t kSquares, class T>
HWY_INLINE VectorOf<kSquares, T> load_words(const T* from, std::int64_t step) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kSquares == 4)
    return VectorOf<kSquares, T>{insert_rows(from, from + step, from + 2 * step, from + 3 * step)};
#endif
  return load_rows<kSquares>(from, step);
}

// Stores what two rows of pairs of 8 bytes hold, the lower pair as one row and the upper as the
// next.
template <std::size_t kSquares, class T>
HWY_INLINE void store_two(const Transposed<T>& m, std::int64_t r, std::int64_t c,
                          hn::Vec<Words64<kSquares>> a, hn::Vec<Words64<kSquares>> b) {
  const Words64<kSquares> d;
  const auto store = [&](hn::Vec<Words64<kSquares>> words, T* to)
                         HWY_ATTR { hn::StoreU(words, d, reinterpret_cast<std::uint64_t*>(to)); };
  store(hn::InterleaveLower(d, a, b), m.target(r, c));
  store(hn::InterleaveUpper(d, a, b), m.target(r, c + 1));
}

// Four rows of each square, `step` rows apart, as the bytes that each column has of them: of
// floats 16, one column in a vector's part, and of 16-bit words 8, two columns.
template <std::size_t kSquares, class T>
struct FourRows {
  VectorOf<kSquares, T> rows[4];

  HWY_INLINE FourRows(const Transposed<T>& m, std::int64_t r, std::int64_t c) {
    const std::int64_t step = std::int64_t(kSide<T>) * m.from_stride;
    for (std::int64_t i = 0; i < 4; ++i) rows[i] = load_words<kSquares>(m.at(r + i, c), step);
  }
};

// Transposes kSquares squares, the first of which begins at row r and column c.
template <std::size_t kSquares>
HWY_INLINE void transpose_squares(const Transposed<float>& m, std::int64_t r, std::int64_t c) {
  const Words32<kSquares> d;
  const Words64<kSquares> d64;
  const FourRows<kSquares, float> four(m, r, c);
  const auto& rows = four.rows;
  store_two<kSquares>(m, r, c, hn::BitCast(d64, hn::InterleaveLower(d, rows[0], rows[1])),
                      hn::BitCast(d64, hn::InterleaveLower(d, rows[2], rows[3])));
  store_two<kSquares>(m, r, c + 2, hn::BitCast(d64, hn::InterleaveUpper(d, rows[0], rows[1])),
                      hn::BitCast(d64, hn::InterleaveUpper(d, rows[2], rows[3])));
}

// Half of squares of 16-bit words: four rows, as the 8 bytes that each of the eight columns has of
// them, two columns in a vector.
template <std::size_t kSquares, class T>
HWY_INLINE void interleave_four(const Transposed<T>& m, std::int64_t r, std::int64_t c,
                                hn::Vec<Words64<kSquares>>* columns) {
  const Words16<kSquares> d;
  const Words32<kSquares> d32;
  const Words64<kSquares> d64;
  const FourRows<kSquares, T> four(m, r, c);
  const auto& rows = four.rows;
  const auto low01 = hn::BitCast(d32, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto low23 = hn::BitCast(d32, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto high01 = hn::BitCast(d32, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto high23 = hn::BitCast(d32, hn::InterleaveUpper(d, rows[2], rows[3]));
  columns[0] = hn::BitCast(d64, hn::InterleaveLower(d32, low01, low23));
  columns[1] = hn::BitCast(d64, hn::InterleaveUpper(d32, low01, low23));
  columns[2] = hn::BitCast(d64, hn::InterleaveLower(d32, high01, high23));
  columns[3] = hn::BitCast(d64, hn::InterleaveUpper(d32, high01, high23));
}

template <std::size_t kSquares, class T>
HWY_INLINE void transpose_squares(const Transposed<T>& m, std::int64_t r, std::int64_t c) {
  constexpr std::int64_t kHalf = kSide<T> / 2;
  hn::Vec<Words64<kSquares>> upper[kHalf], lower[kHalf];
  interleave_four<kSquares>(m, r, c, upper);
  interleave_four<kSquares>(m, r + kHalf, c, lower);
  for (std::int64_t i = 0; i < kHalf; ++i) store_two<kSquares>(m, r, c + 2 * i, upper[i], lower[i]);
}

// The bytes of a row that are moved together, on the side whose rows are farther apart. They are
// several cache lines where the rows of the other side then stay in the nearest cache: if the far
// rows all fall into one set of it, and each into a page of its own, four lines at once are written
// in a sixth of the time that one line after the other takes, and two are read in two thirds.
inline constexpr std::int64_t kLineBytes = 64;
HWY_INLINE std::int64_t bytes_together(std::int64_t near_row_bytes, std::int64_t lines) {
  constexpr std::int64_t kMostBytes = 1024;
  return kLineBytes * (std::abs(near_row_bytes) <= kMostBytes ? lines : 1);
}

// Transposes rows [first, end), whole squares of them, in groups of kSquares squares. The side
// whose rows are farther apart is read or written in whole cache lines, because its rows may all
// fall into one set of the nearest cache. Lines of the other side stay there.
template <std::size_t kSquares, class T>
HWY_INLINE void transpose_rows(const Transposed<T>& m, std::int64_t first, std::int64_t end,
                               std::int64_t cols) {
  constexpr auto kCols = static_cast<std::int64_t>(kSide<T>);
  constexpr auto kRows = static_cast<std::int64_t>(kSquares) * kCols;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (std::abs(m.from_stride) >= std::abs(m.to_stride)) {
    const std::int64_t width = bytes_together(m.to_stride * kSize, 2) / kSize;
    for (std::int64_t line = 0; line < cols; line += width)
      for (std::int64_t r = first; r < end; r += kRows)
        for (std::int64_t c = line; c < std::min(line + width, cols); c += kCols)
          transpose_squares<kSquares>(m, r, c);
  } else {
    const std::int64_t width = bytes_together(m.from_stride * kSize, 4) / kSize;
    for (std::int64_t line = first; line < end; line += width)
      for (std::int64_t c = 0; c < cols; c += kCols)
        for (std::int64_t r = line; r < std::min(line + width, end); r += kRows)
          transpose_squares<kSquares>(m, r, c);
  }
}

#if HWY_TARGET == HWY_AVX3
// Sixteen rows and columns of floats: whole cache lines are read and written on both sides, because
// sixteen rows that fall into one set of the nearest cache push each other out between the parts of
// their lines.
inline constexpr std::int64_t kSquare = 16;

// Joins the parts of 16 bytes that `kParts` names of two vectors each.
template <int kParts>
HWY_INLINE __m512 join_parts(__m512 a, __m512 b) {
  return _mm512_shuffle_f32x4(a, b, kParts);
}

HWY_INLINE void transpose_square(const Transposed<float>& m, std::int64_t r, std::int64_t c) {
  constexpr int kEven = 0x88, kOdd = 0xdd;
  __m512 rows[kSquare], pairs[kSquare], fours[kSquare];
  for (std::int64_t i = 0; i < kSquare; ++i) rows[i] = _mm512_loadu_ps(m.at(r + i, c));
  for (std::int64_t i = 0; i < kSquare; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (std::int64_t i = 0; i < kSquare; ++i) {
    const std::int64_t first = i / 4 * 4 + i % 4 / 2;
    const __m512d a = _mm512_castps_pd(pairs[first]), b = _mm512_castps_pd(pairs[first + 2]);
    fours[i] = _mm512_castpd_ps(i % 2 == 0 ? _mm512_unpacklo_pd(a, b) : _mm512_unpackhi_pd(a, b));
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    const __m512 a = join_parts<kEven>(fours[i], fours[i + 4]);
    const __m512 b = join_parts<kEven>(fours[i + 8], fours[i + 12]);
    const __m512 x = join_parts<kOdd>(fours[i], fours[i + 4]);
    const __m512 y = join_parts<kOdd>(fours[i + 8], fours[i + 12]);
    _mm512_storeu_ps(m.target(r, c + i), join_parts<kEven>(a, b));
    _mm512_storeu_ps(m.target(r, c + i + 4), join_parts<kEven>(x, y));
    _mm512_storeu_ps(m.target(r, c + i + 8), join_parts<kOdd>(a, b));
    _mm512_storeu_ps(m.target(r, c + i + 12), join_parts<kOdd>(x, y));
  }
}

// Transposes whole squares. Zen 5, of the time of four columns at once: 128 x 1024 floats 0.84,
// 1024 x 128 0.72, 1024 x 4096 0.76, 4096 x 1024 0.45, 4096 x 4096 0.57.
HWY_INLINE void transpose_whole(const Transposed<float>& m, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kFarRow = 1024 / sizeof(float), kTogether = 4 * kSquare;
  const std::int64_t from = std::abs(m.from_stride), to = std::abs(m.to_stride);
  if (from <= to && from > kFarRow) {
    for (std::int64_t line = 0; line < rows; line += kTogether)
      for (std::int64_t c = 0; c < cols; c += kSquare)
        for (std::int64_t r = line; r < std::min(line + kTogether, rows); r += kSquare)
          transpose_square(m, r, c);
    return;
  }
  const std::int64_t width = to > kFarRow ? kSquare : from > to ? kTogether : kTogether / 2;
  for (std::int64_t line = 0; line < cols; line += width)
    for (std::int64_t r = 0; r < rows; r += kSquare)
      for (std::int64_t c = line; c < std::min(line + width, cols); c += kSquare)
        transpose_square(m, r, c);
}
#endif

template <class T>
HWY_INLINE void transpose_all(const Transposed<T>& m, std::int64_t rows, std::int64_t cols) {
  constexpr auto kStep = static_cast<std::int64_t>(kSide<T>);
  constexpr auto kTall = static_cast<std::int64_t>(kMostSquares) * kStep;
  const std::int64_t tall_rows = rows / kTall * kTall, whole_rows = rows / kStep * kStep;
  const std::int64_t whole_cols = cols / kStep * kStep;
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<T, float>) {
    // Lines of sixteen rows alone are not pushed out: 1.1 times the time.
    const std::int64_t squares = tall_rows > kSquare ? cols / kSquare * kSquare : 0;
    transpose_whole(m, tall_rows, squares);
    const Transposed<T> rest{m.at(0, squares), m.from_stride, m.target(0, squares), m.to_stride};
    transpose_rows<kMostSquares>(rest, 0, tall_rows, whole_cols - squares);
  } else {
    transpose_rows<kMostSquares>(m, 0, tall_rows, whole_cols);
  }
#else
  transpose_rows<kMostSquares>(m, 0, tall_rows, whole_cols);
#endif
  if constexpr (kMostSquares > 1) transpose_rows<1>(m, tall_rows, whole_rows, whole_cols);
  m.one_by_one(whole_rows, rows - whole_rows, 0, whole_cols);
  m.one_by_one(0, rows, whole_cols, cols - whole_cols);
}

#else

template <class T>
HWY_INLINE void transpose_all(const Transposed<T>& m, std::int64_t rows, std::int64_t cols) {
  m.one_by_one(0, rows, 0, cols);
}

#endif

void transpose_float(const float* from, std::int64_t from_stride, std::int64_t rows,
                     std::int64_t cols, float* to, std::int64_t to_stride) {
  transpose_all(Transposed<float>{from, from_stride, to, to_stride}, rows, cols);
}
void transpose_half(const Half* from, std::int64_t from_stride, std::int64_t rows,
                    std::int64_t cols, Half* to, std::int64_t to_stride) {
  transpose_all(Transposed<Half>{from, from_stride, to, to_stride}, rows, cols);
}
void transpose_bfloat16(const BFloat16* from, std::int64_t from_stride, std::int64_t rows,
                        std::int64_t cols, BFloat16* to, std::int64_t to_stride) {
  transpose_all(Transposed<BFloat16>{from, from_stride, to, to_stride}, rows, cols);
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {
HWY_EXPORT(transpose_float);
HWY_EXPORT(transpose_half);
HWY_EXPORT(transpose_bfloat16);
}  // namespace internal

void transpose(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               float* to, std::int64_t to_stride) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(transpose_float)(from, from_stride, rows, cols, to, to_stride);
}
void transpose(const Half* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               Half* to, std::int64_t to_stride) noexcept {
  using namespace internal;
  HWY_DYNAMIC_DISPATCH(transpose_half)(from, from_stride, rows, cols, to, to_stride);
}
void transpose(const BFloat16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               BFloat16* to, std::int64_t to_stride) noexcept {
  using namespace internal;
  HWY_DYNAMIC_DISPATCH(transpose_bfloat16)(from, from_stride, rows, cols, to, to_stride);
}

}  // namespace tessera::codelets
#endif
