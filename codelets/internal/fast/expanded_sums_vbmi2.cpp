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
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "tessera/base/dims.hpp"
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
// Storing the words and widening them from memory would spare the port of the shuffles: the kernel
// takes 0.94 of the time then on Sapphire Rapids, and 1.2 on Zen 5.
TESSERA_EXPANDS_INLINE ChunkFloats to_floats(__m512i words, const Half*) {
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(words)),
          _mm512_cvtph_ps(_mm512_extracti64x4_epi64(words, 1))};
}

// Loads the elements whose bits are set, and 0 for the others.
TESSERA_EXPANDS_INLINE ChunkFloats load_some(const BFloat16* from, __mmask32 some) {
  return to_floats(_mm512_maskz_loadu_epi16(some, from), from);
}
TESSERA_EXPANDS_INLINE ChunkFloats load_some(const Half* from, __mmask32 some) {
  const auto* const words = reinterpret_cast<const __m256i*>(from);
  return {_mm512_maskz_cvtph_ps(static_cast<__mmask16>(some), _mm256_loadu_si256(words)),
          _mm512_maskz_cvtph_ps(static_cast<__mmask16>(some >> 16), _mm256_loadu_si256(words + 1))};
}

// Moves the first elements of `packed` to the places whose bits are set, in the order of both; the
// others are 0. Zen 5 waits for the former content of the result's register even where the
// instruction only sets it, so it is given one that was set to 0: a bfloat16 product of one column
// takes 0.41 of the time (Zen 5, 4096 x 11008, density 0.3).
TESSERA_EXPANDS_INLINE __m512i expand(__mmask32 mask, __m512i packed) {
  __m512i zero;
  __asm__("vpxor %x0, %x0, %x0" : "=x"(zero));
  return _mm512_mask_expand_epi16(zero, mask, packed);
}

// Asks for what is read some time later. The address is computed as a number, because it may be
// past the end.
TESSERA_EXPANDS_INLINE void ask_for(const void* from, std::ptrdiff_t bytes) {
  const std::uintptr_t ahead =
      reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(bytes);
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

// The operand is converted once for all rows of a call, in slices that stay in the nearest cache:
// with a conversion for each row the kernel takes 1.2 times as long (Sapphire Rapids, two threads).
constexpr std::int64_t kSliceFloats = 4096, kSliceRows = 16;

// Converts chunks of kColumns columns: [chunks][kColumns][two vectors].
template <std::int64_t kColumns, class T>
TESSERA_EXPANDS_INLINE void convert_slice(const PackedSums<T>& args, Range chunks, float* to) {
  for (std::int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk)
    for (std::int64_t j = 0; j < kColumns; ++j, to += 2 * kSumLanes) {
      const ChunkFloats floats = load_floats(args.in + j * args.in_stride + chunk * kPackedChunk);
      _mm512_store_ps(to, floats.first);
      _mm512_store_ps(to + kSumLanes, floats.second);
    }
}

// RowParts names what some rows have in a slice. The values and masks that are read next lie
// `ahead` bytes behind.
template <std::int64_t kRows, class T>
struct RowParts {
  const T* values[kRows];
  const std::uint32_t* masks[kRows];
  std::ptrdiff_t values_ahead[kRows], masks_ahead;
  std::int64_t chunks;
};

// Adds the products of rows' parts to `sums`, and moves `values` behind those that were read.
template <std::int64_t kRows, std::int64_t kColumns, class T>
TESSERA_EXPANDS_INLINE void add_chunks(RowParts<kRows, T>& rows, const float* terms,
                                       float (*sums)[kColumns][2 * kSumLanes]) {
  __m512 first[kRows][kColumns], second[kRows][kColumns];
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      first[r][j] = _mm512_load_ps(sums[r][j]);
      second[r][j] = _mm512_load_ps(sums[r][j] + kSumLanes);
    }
  constexpr std::int64_t kMasksInLine = 16;  // 64 bytes
  for (std::int64_t chunk = 0; chunk < rows.chunks; ++chunk, terms += 2 * kSumLanes * kColumns)
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::uint32_t mask = rows.masks[r][chunk];
      const T* const values = rows.values[r];
      ask_for(values, rows.values_ahead[r]);
      if (chunk % kMasksInLine == 0) ask_for(rows.masks[r] + chunk, rows.masks_ahead);
      const __m512i words = expand(mask, _mm512_loadu_si512(values));
      rows.values[r] += std::popcount(mask);
      const ChunkFloats factors = to_floats(words, values);
      for (std::int64_t j = 0; j < kColumns; ++j) {
        const float* const term = terms + 2 * kSumLanes * j;
        first[r][j] = _mm512_fmadd_ps(factors.first, _mm512_load_ps(term), first[r][j]);
        second[r][j] =
            _mm512_fmadd_ps(factors.second, _mm512_load_ps(term + kSumLanes), second[r][j]);
      }
    }
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      _mm512_store_ps(sums[r][j], first[r][j]);
      _mm512_store_ps(sums[r][j] + kSumLanes, second[r][j]);
    }
}

// At most kSliceRows rows, and their sums with kColumns columns of the operand.
template <std::int64_t kColumns, class T>
class SlicedRows {
 public:
  TESSERA_EXPANDS_INLINE SlicedRows(const PackedSums<T>& args, std::int64_t row, std::int64_t rows)
      : args_(args), row_(row), rows_(rows) {
    for (std::int64_t r = 0; r <= rows; ++r) values_[r] = args.values + args.row_begin[row + r];
    for (std::int64_t r = 0; r < rows; ++r)
      for (auto& sums : sums_[r]) std::fill(std::begin(sums), std::end(sums), 0.0f);
  }

 protected:
  TESSERA_EXPANDS_INLINE void write() const {
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t j = 0; j < kColumns; ++j) {
        const float* const sums = sums_[r][j];
        args_.out[(row_ + r) * args_.out_stride + j] =
            sum_of(_mm512_load_ps(sums), _mm512_load_ps(sums + kSumLanes));
      }
  }

  // Returns the row that is read after `count` rows from r on: the same part of the next rows, or
  // the next part of the first ones.
  std::int64_t next_row(std::int64_t r, std::int64_t count, bool is_last_slice) const {
    return r + 2 * count <= rows_ ? r + count : is_last_slice ? rows_ : 0;
  }

  const PackedSums<T>& args_;
  std::int64_t row_, rows_;
  alignas(64) float sums_[kSliceRows][kColumns][2 * kSumLanes];
  const T* values_[kSliceRows + 1];  // the next of each row, and those behind the rows
};

template <std::int64_t kColumns, class T>
class BitRows : SlicedRows<kColumns, T> {
  using Rows = SlicedRows<kColumns, T>;
  using Rows::args_, Rows::row_, Rows::rows_, Rows::sums_, Rows::values_;

 public:
  TESSERA_EXPANDS_INLINE BitRows(const PackedSums<T>& args, std::int64_t row, std::int64_t rows)
      : Rows(args, row, rows), chunks_(ceil_div(args.cols, kPackedChunk)) {}

  TESSERA_EXPANDS_INLINE void run() {
    constexpr std::int64_t kSliceChunks = kSliceFloats / (2 * kSumLanes * kColumns);
    for (std::int64_t begin = 0; begin < chunks_; begin += kSliceChunks) {
      const Range slice{begin, std::min(begin + kSliceChunks, chunks_)};
      convert_slice<kColumns>(args_, slice, terms_);
      std::int64_t r = 0;
      for (; r + kTogether <= rows_; r += kTogether) add<kTogether>(r, slice);
      for (; r < rows_; ++r) add<1>(r, slice);
    }
    this->write();
  }

 private:
  // Each sum of a row waits for the one before it, which two rows at once hide; they also share
  // what is loaded of the operand.
  static constexpr std::int64_t kTogether = 2;

  template <std::int64_t kRows>
  TESSERA_EXPANDS_INLINE void add(std::int64_t r, Range slice) {
    RowParts<kRows, T> parts;
    const std::int64_t next = this->next_row(r, kRows, slice.end == chunks_);
    for (std::int64_t i = 0; i < kRows; ++i) {
      parts.values[i] = values_[r + i];
      parts.masks[i] = args_.masks + (row_ + r + i) * chunks_ + slice.begin;
      parts.values_ahead[i] = reinterpret_cast<const char*>(values_[std::min(next + i, rows_)]) -
                              reinterpret_cast<const char*>(values_[r + i]);
    }
    parts.masks_ahead = std::ptrdiff_t(sizeof(std::uint32_t)) *
                        ((next - r) * chunks_ + (next == 0 ? slice.size() : 0));
    parts.chunks = slice.size();
    add_chunks<kRows, kColumns>(parts, terms_, sums_ + r);
    for (std::int64_t i = 0; i < kRows; ++i) values_[r + i] = parts.values[i];
  }

  std::int64_t chunks_;
  alignas(64) float terms_[kSliceFloats];  // of a slice: [chunks][kColumns][two vectors]
};

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

// Slices of the operand's columns stay in the nearest cache for all rows: with 4 columns the kernel
// takes 0.69 of the time (Zen 5, 4096 x 11008, density 0.1).
template <std::int64_t kColumns, class T>
class ByteRows : SlicedRows<kColumns, T> {
  using Rows = SlicedRows<kColumns, T>;
  using Rows::args_, Rows::row_, Rows::rows_, Rows::sums_, Rows::values_;

 public:
  TESSERA_EXPANDS_INLINE ByteRows(const PackedSums<T>& args, std::int64_t row, std::int64_t rows)
      : Rows(args, row, rows), segments_(ceil_div(args.cols, kPackedSegment)) {}

  TESSERA_EXPANDS_INLINE void run() {
    constexpr std::int64_t kSliceBytes = 24 << 10;  // most of an L1 of 32 KiB
    constexpr std::int64_t kMost = kSliceBytes / (kPackedSegment * sizeof(T) * kColumns);
    const std::int64_t slices = std::max<std::int64_t>(ceil_div(segments_, kMost), 1);
    const std::int64_t each = ceil_div(segments_, slices);
    for (std::int64_t begin = 0; begin < segments_; begin += each) {
      const Range slice{begin, std::min(begin + each, segments_)};
      for (std::int64_t r = 0; r < rows_; ++r) add(r, slice);
    }
    this->write();
  }

 private:
  TESSERA_EXPANDS_INLINE void add(std::int64_t r, Range slice) {
    const std::uint8_t* const counts = args_.counts + (row_ + r) * segments_;
    const T* values = values_[r];
    const std::uint8_t* offsets = args_.offsets + (values - args_.values);
    const std::ptrdiff_t ahead = values_[this->next_row(r, 1, slice.end == segments_)] - values;
    __m512 first[kColumns], second[kColumns];
    for (std::int64_t j = 0; j < kColumns; ++j) {
      first[j] = _mm512_load_ps(sums_[r][j]);
      second[j] = _mm512_load_ps(sums_[r][j] + kSumLanes);
    }
    const T* in = args_.in + slice.begin * kPackedSegment;
    for (std::int64_t segment = slice.begin; segment < slice.end; ++segment) {
      const std::int64_t count = counts[segment];
      for (std::int64_t i = 0; i < count; i += kPackedChunk) {
        const auto here = std::min(kPackedChunk, count - i);
        const auto some = static_cast<__mmask32>(~std::uint32_t{0} >> (kPackedChunk - here));
        ask_for(values + i, ahead * std::ptrdiff_t(sizeof(T)));
        ask_for(offsets + i, ahead);
        const __m512i at =
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets + i)));
        const __mmask32 bit6 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64));
        const __mmask32 bit7 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
        const ChunkFloats factors = load_some(values + i, some);
        for (std::int64_t j = 0; j < kColumns; ++j) {
          const ChunkFloats terms =
              to_floats(look_up(in + j * args_.in_stride, at, bit6, bit7), values);
          first[j] = _mm512_fmadd_ps(factors.first, terms.first, first[j]);
          second[j] = _mm512_fmadd_ps(factors.second, terms.second, second[j]);
        }
      }
      values += count;
      offsets += count;
      in += kPackedSegment;
    }
    values_[r] = values;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      _mm512_store_ps(sums_[r][j], first[j]);
      _mm512_store_ps(sums_[r][j] + kSumLanes, second[j]);
    }
  }

  std::int64_t segments_;
};

template <std::int64_t kColumns, class T>
TESSERA_EXPANDS void add_all(const PackedSums<T>& args) {
  for (std::int64_t row = 0; row < args.rows; row += kSliceRows) {
    const std::int64_t rows = std::min(kSliceRows, args.rows - row);
    if (args.positions == PackedPositions::Bits)
      BitRows<kColumns, T>(args, row, rows).run();
    else
      ByteRows<kColumns, T>(args, row, rows).run();
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
