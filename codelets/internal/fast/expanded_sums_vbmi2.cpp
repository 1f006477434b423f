#include "tessera/codelets/internal/fast/expanded_sums.hpp"

#if defined(__x86_64__)
#if !defined(__clang__)
// The header of g++ 12 begins results with a register of any content, and warns of that itself.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tessera/base/int_math.hpp"

namespace tessera::codelets::internal {

#if defined(__x86_64__)
namespace {

#define TESSERA_EXPANDS __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt,fma")))
#define TESSERA_EXPANDS_INLINE TESSERA_EXPANDS __attribute__((always_inline)) inline

// The 32 values of a chunk as floats, in the vectors that ExpandedLanes names.
struct ChunkFloats {
  __m512 first, second;
};

TESSERA_EXPANDS_INLINE ChunkFloats to_floats(__m512i words, const BFloat16*) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(words, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(int(0xffff0000))))};
}
TESSERA_EXPANDS_INLINE ChunkFloats load_floats(const BFloat16* from) {
  return to_floats(_mm512_loadu_si512(from), from);
}
TESSERA_EXPANDS_INLINE ChunkFloats load_floats(const Half* from) {
  const auto* const words = reinterpret_cast<const __m256i*>(from);
  return {_mm512_cvtph_ps(_mm256_loadu_si256(words)),
          _mm512_cvtph_ps(_mm256_loadu_si256(words + 1))};
}
// A conversion from a register takes the port of the shuffles, which the expansion needs, and one
// from memory does not: by way of memory the kernel takes 0.94 of the time (Sapphire Rapids). The
// empty statement keeps the compiler from leaving the memory out.
TESSERA_EXPANDS_INLINE ChunkFloats to_floats(__m512i words, const Half*) {
  alignas(64) Half kept[kPackedChunk];
  _mm512_store_si512(kept, words);
  __asm__("" : "+m"(kept));
  return load_floats(kept);
}

// Asks for what is read some time later, values and positions alike: without it the kernel takes
// 1.2 to 1.5 times as long where the matrix is in memory, and 1.1 times with half the distance. The
// address is computed as a number, because it may be past the end.
TESSERA_EXPANDS_INLINE void ask_ahead(const void* from) {
  constexpr std::uintptr_t kAheadBytes = 2048;
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(from) + kAheadBytes;
  _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
}

// Adds the two vectors, and then the upper half of the lanes to the lower half until one is left.
TESSERA_EXPANDS_INLINE float sum_of(__m512 first, __m512 second) {
  const __m512 sums = _mm512_add_ps(first, second);
  const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sums), high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))) + 0.0f;
}

// Computes kRows rows from `row` on with kColumns columns of the operand.
template <std::int64_t kRows, std::int64_t kColumns, class T>
TESSERA_EXPANDS_INLINE void add_bits(const PackedSums<T>& args, std::int64_t row) {
  const std::int64_t chunks = ceil_div(args.cols, kPackedChunk);
  const T* values[kRows];
  const std::uint32_t* masks[kRows];
  __m512 first[kRows][kColumns], second[kRows][kColumns];
  for (std::int64_t r = 0; r < kRows; ++r) {
    values[r] = args.values + args.row_begin[row + r];
    masks[r] = args.masks + (row + r) * chunks;
    for (std::int64_t j = 0; j < kColumns; ++j) first[r][j] = second[r][j] = _mm512_setzero_ps();
  }
  constexpr std::int64_t kMasksInLine = 16;  // 64 bytes
  const T* in = args.in;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk, in += kPackedChunk) {
    ChunkFloats terms[kColumns];
    for (std::int64_t j = 0; j < kColumns; ++j) terms[j] = load_floats(in + j * args.in_stride);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::uint32_t mask = masks[r][chunk];
      ask_ahead(values[r]);
      if (chunk % kMasksInLine == 0) ask_ahead(masks[r] + chunk);
      const __m512i words = _mm512_maskz_expand_epi16(mask, _mm512_loadu_si512(values[r]));
      values[r] += std::popcount(mask);
      const ChunkFloats factors = to_floats(words, values[r]);
      for (std::int64_t j = 0; j < kColumns; ++j) {
        first[r][j] = _mm512_fmadd_ps(factors.first, terms[j].first, first[r][j]);
        second[r][j] = _mm512_fmadd_ps(factors.second, terms[j].second, second[r][j]);
      }
    }
  }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t j = 0; j < kColumns; ++j)
      args.out[(row + r) * args.out_stride + j] = sum_of(first[r][j], second[r][j]);
}

// Returns in[offset] for 32 offsets below 256, from the 512 bytes of a segment: four lookups in 64
// elements each, of which the upper two bits of an offset choose one.
template <class T>
TESSERA_EXPANDS_INLINE __m512i look_up(const T* in, __m512i offsets, __mmask32 bit6,
                                       __mmask32 bit7) {
  const auto quarter = [&](std::int64_t q) TESSERA_EXPANDS {
    return _mm512_permutex2var_epi16(_mm512_loadu_si512(in + 64 * q), offsets,
                                     _mm512_loadu_si512(in + 64 * q + 32));
  };
  const __m512i low = _mm512_mask_blend_epi16(bit6, quarter(0), quarter(1));
  const __m512i high = _mm512_mask_blend_epi16(bit6, quarter(2), quarter(3));
  return _mm512_mask_blend_epi16(bit7, low, high);
}

template <std::int64_t kColumns, class T>
TESSERA_EXPANDS_INLINE void add_bytes(const PackedSums<T>& args, std::int64_t row) {
  const std::int64_t segments = ceil_div(args.cols, kPackedSegment);
  const std::uint8_t* counts = args.counts + row * segments;
  const T* values = args.values + args.row_begin[row];
  const std::uint8_t* offsets = args.offsets + args.row_begin[row];
  __m512 first[kColumns], second[kColumns];
  for (std::int64_t j = 0; j < kColumns; ++j) first[j] = second[j] = _mm512_setzero_ps();
  const T* in = args.in;
  for (std::int64_t segment = 0; segment < segments; ++segment, in += kPackedSegment) {
    const std::int64_t count = counts[segment];
    for (std::int64_t i = 0; i < count; i += kPackedChunk) {
      const auto here = std::min(kPackedChunk, count - i);
      const auto some = static_cast<__mmask32>(~std::uint32_t{0} >> (kPackedChunk - here));
      const __m512i words = _mm512_maskz_loadu_epi16(some, values + i);
      ask_ahead(values + i);
      ask_ahead(offsets + i);
      const __m512i at =
          _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets + i)));
      const __mmask32 bit6 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64));
      const __mmask32 bit7 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
      const ChunkFloats factors = to_floats(words, values);
      for (std::int64_t j = 0; j < kColumns; ++j) {
        const ChunkFloats terms =
            to_floats(look_up(in + j * args.in_stride, at, bit6, bit7), values);
        first[j] = _mm512_fmadd_ps(factors.first, terms.first, first[j]);
        second[j] = _mm512_fmadd_ps(factors.second, terms.second, second[j]);
      }
    }
    values += count;
    offsets += count;
  }
  for (std::int64_t j = 0; j < kColumns; ++j)
    args.out[row * args.out_stride + j] = sum_of(first[j], second[j]);
}

// With one column a row is computed alone, so that the matrix is read in the order of its memory:
// two to eight rows at once share the conversion of the operand, but where the matrix is in memory
// they take 1.2 to 2 times as long. With more columns the arithmetic is the limit.
template <std::int64_t kColumns, class T>
TESSERA_EXPANDS void add_all(const PackedSums<T>& args) {
  constexpr std::int64_t kRows = kColumns == 1 ? 1 : 2;
  std::int64_t row = 0;
  if (args.positions == PackedPositions::Bits) {
    for (; row + kRows <= args.rows; row += kRows) add_bits<kRows, kColumns>(args, row);
    for (; row < args.rows; ++row) add_bits<1, kColumns>(args, row);
  } else {
    for (; row < args.rows; ++row) add_bytes<kColumns>(args, row);
  }
}

template <class T>
bool add_if_possible(const PackedSums<T>& args) {
  static const bool has = __builtin_cpu_supports("avx512vbmi2") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (!has) return false;
  if (args.z == 1) return add_all<1>(args), true;
  if (args.z == 2) return add_all<2>(args), true;
  if (args.z == 3) return add_all<3>(args), true;
  return add_all<4>(args), true;
}

}  // namespace

bool expanded_sums_vbmi2(const PackedSums<Half>& sums) noexcept { return add_if_possible(sums); }
bool expanded_sums_vbmi2(const PackedSums<BFloat16>& sums) noexcept {
  return add_if_possible(sums);
}

#else

bool expanded_sums_vbmi2(const PackedSums<Half>&) noexcept { return false; }
bool expanded_sums_vbmi2(const PackedSums<BFloat16>&) noexcept { return false; }

#endif

}  // namespace tessera::codelets::internal
