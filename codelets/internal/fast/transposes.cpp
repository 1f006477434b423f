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

// Vectors of 16 bytes: a square of so many rows and columns takes one load and one store for each
// row. Wider ones gain nothing, because data from L2 and L3 is the limit.
inline constexpr std::size_t kBytes = 16;

template <class T>
inline constexpr std::size_t kSide = kBytes / sizeof(T);

using Words16 = hn::Simd<std::uint16_t, kSide<Half>, 0>;
using Words32 = hn::Simd<std::uint32_t, kSide<float>, 0>;
using Words64 = hn::Simd<std::uint64_t, kSide<double>, 0>;

template <class T>
using WordsOf = std::conditional_t<sizeof(T) == 2, Words16, Words32>;
template <class T>
using WordOf = hn::TFromD<WordsOf<T>>;

template <class T>
HWY_INLINE hn::Vec<WordsOf<T>> load_words(const T* from) {
  return hn::LoadU(WordsOf<T>(), reinterpret_cast<const WordOf<T>*>(from));
}
template <class T>
HWY_INLINE void store_words(hn::Vec<Words64> words, T* to) {
  hn::StoreU(hn::BitCast(WordsOf<T>(), words), WordsOf<T>(), reinterpret_cast<WordOf<T>*>(to));
}

// Stores what two rows of pairs of 8 bytes hold, the lower pair as one row and the upper as the
// next.
template <class T>
HWY_INLINE void store_two(const Transposed<T>& m, std::int64_t r, std::int64_t c,
                          hn::Vec<Words64> a, hn::Vec<Words64> b) {
  store_words(hn::InterleaveLower(Words64(), a, b), m.target(r, c));
  store_words(hn::InterleaveUpper(Words64(), a, b), m.target(r, c + 1));
}

HWY_INLINE void transpose_square(const Transposed<float>& m, std::int64_t r, std::int64_t c) {
  const Words32 d;
  const Words64 d64;
  const auto row0 = load_words(m.at(r, c)), row1 = load_words(m.at(r + 1, c));
  const auto row2 = load_words(m.at(r + 2, c)), row3 = load_words(m.at(r + 3, c));
  store_two(m, r, c, hn::BitCast(d64, hn::InterleaveLower(d, row0, row1)),
            hn::BitCast(d64, hn::InterleaveLower(d, row2, row3)));
  store_two(m, r, c + 2, hn::BitCast(d64, hn::InterleaveUpper(d, row0, row1)),
            hn::BitCast(d64, hn::InterleaveUpper(d, row2, row3)));
}

// Half of a square of 16-bit words: four rows, as the 8 bytes that each of the eight columns has of
// them, two columns in a vector.
template <class T>
HWY_INLINE void interleave_four(const Transposed<T>& m, std::int64_t r, std::int64_t c,
                                hn::Vec<Words64>* columns) {
  const Words16 d;
  const Words32 d32;
  const Words64 d64;
  const auto row0 = load_words(m.at(r, c)), row1 = load_words(m.at(r + 1, c));
  const auto row2 = load_words(m.at(r + 2, c)), row3 = load_words(m.at(r + 3, c));
  const auto low01 = hn::BitCast(d32, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(d32, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(d32, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(d32, hn::InterleaveUpper(d, row2, row3));
  columns[0] = hn::BitCast(d64, hn::InterleaveLower(d32, low01, low23));
  columns[1] = hn::BitCast(d64, hn::InterleaveUpper(d32, low01, low23));
  columns[2] = hn::BitCast(d64, hn::InterleaveLower(d32, high01, high23));
  columns[3] = hn::BitCast(d64, hn::InterleaveUpper(d32, high01, high23));
}

template <class T>
HWY_INLINE void transpose_square(const Transposed<T>& m, std::int64_t r, std::int64_t c) {
  constexpr std::int64_t kHalf = kSide<T> / 2;
  hn::Vec<Words64> upper[kHalf], lower[kHalf];
  interleave_four(m, r, c, upper);
  interleave_four(m, r + kHalf, c, lower);
  for (std::int64_t i = 0; i < kHalf; ++i) store_two(m, r, c + 2 * i, upper[i], lower[i]);
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

// The side whose rows are farther apart is read or written in whole cache lines, because its rows
// may all fall into one set of the nearest cache. Lines of the other side stay there.
template <class T>
HWY_INLINE void transpose_all(const Transposed<T>& m, std::int64_t rows, std::int64_t cols) {
  constexpr auto kStep = static_cast<std::int64_t>(kSide<T>);
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t whole_rows = rows / kStep * kStep, whole_cols = cols / kStep * kStep;
  if (std::abs(m.from_stride) >= std::abs(m.to_stride)) {
    const std::int64_t width = bytes_together(m.to_stride * kSize, 2) / kSize;
    for (std::int64_t line = 0; line < whole_cols; line += width)
      for (std::int64_t r = 0; r < whole_rows; r += kStep)
        for (std::int64_t c = line; c < std::min(line + width, whole_cols); c += kStep)
          transpose_square(m, r, c);
  } else {
    const std::int64_t width = bytes_together(m.from_stride * kSize, 4) / kSize;
    for (std::int64_t line = 0; line < whole_rows; line += width)
      for (std::int64_t c = 0; c < whole_cols; c += kStep)
        for (std::int64_t r = line; r < std::min(line + width, whole_rows); r += kStep)
          transpose_square(m, r, c);
  }
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
