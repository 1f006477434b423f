#include "tessera/codelets/internal/fast/pair_sums.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

namespace tessera::codelets::internal {

#if defined(__x86_64__)
namespace {

#define TESSERA_PAIRS \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"), always_inline)) inline

constexpr std::int64_t kLanes = 16;  // columns of a vector of sums

// Returns the mask of the columns from `first` on that a vector holds: all sixteen, or those that
// are left of z.
TESSERA_PAIRS __mmask16 columns_from(std::int64_t first, std::int64_t z) {
  const std::int64_t count = std::clamp<std::int64_t>(z - first, 0, kLanes);
  return static_cast<__mmask16>((1u << count) - 1u);
}

// Loads two input rows as pairs: column c of `first` in the low half of lane c, of `second` in the
// high half.
TESSERA_PAIRS __m512i load_pairs(const BFloat16* first, const BFloat16* second, __mmask16 some,
                                 __m512i order) {
  const __m256i low = _mm256_maskz_loadu_epi16(some, first);
  const __m256i high = _mm256_maskz_loadu_epi16(some, second);
  return _mm512_permutex2var_epi16(_mm512_castsi256_si512(low), order,
                                   _mm512_castsi256_si512(high));
}

// Returns 0, 32, 1, 33, ... 15, 47: lane by lane from the first operand and from the second.
TESSERA_PAIRS __m512i pair_order() {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_or_si512(lanes,
                         _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(32)), 16));
}

TESSERA_PAIRS __m512i broadcast_pair(const BFloat16* values) {
  int pair;
  __builtin_memcpy(&pair, values, sizeof pair);
  return _mm512_set1_epi32(pair);
}

// Computes kSide rows of sums x kVectors vectors from `column` on, over all blocks of the run: the
// tiles of block_tiles.inl, with two columns of the block at a time. With kFull all columns of the
// vectors are below z.
template <std::int64_t kSide, std::int64_t kVectors, bool kFull>
TESSERA_PAIRS void add_tile(const BlockSums<BFloat16>& args, std::int64_t column) {
  __m512 sums[kSide][kVectors];
  __mmask16 some[kVectors];
  const __m512i order = pair_order();
  float* out = args.out + args.row * args.out_stride + column;
  for (std::int64_t v = 0; v < kVectors; ++v)
    some[v] = kFull ? static_cast<__mmask16>(~0) : columns_from(column + v * kLanes, args.z);
  for (std::int64_t r = 0; r < kSide; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      sums[r][v] = args.replaces
                       ? _mm512_setzero_ps()
                       : _mm512_maskz_loadu_ps(some[v], out + r * args.out_stride + v * kLanes);
  const auto blocks = static_cast<std::int64_t>(args.columns.size());
  // A cache line of 64 bytes has the columns of two vectors.
  const bool fetches = column % (2 * kLanes) == 0;
  const BFloat16* values = args.values;
  for (std::int64_t b = 0; b < blocks; ++b, values += kSide * kSide) {
    const auto first_row = std::int64_t{args.columns[std::size_t(b)]};
    const BFloat16* in = args.in + first_row * args.in_stride + column;
    // Blocks may be anywhere, so the hardware prefetcher cannot predict the input rows of the block
    // after the next.
    const auto later_row = std::int64_t{args.columns[std::size_t(std::min(b + 2, blocks - 1))]};
    const std::int64_t ahead = (later_row - first_row) * args.in_stride;
    for (std::int64_t k = 0; k < kSide; k += 2, in += 2 * args.in_stride) {
      __m512i pairs[kVectors];
      for (std::int64_t v = 0; v < kVectors; ++v)
        pairs[v] = load_pairs(in + v * kLanes, in + args.in_stride + v * kLanes, some[v], order);
      if (fetches) {
        _mm_prefetch(in + ahead, _MM_HINT_T0);
        _mm_prefetch(in + ahead + args.in_stride, _MM_HINT_T0);
      }
      for (std::int64_t r = 0; r < kSide; ++r) {
        const __m512i factor = broadcast_pair(values + r * kSide + k);
        for (std::int64_t v = 0; v < kVectors; ++v)
          sums[r][v] = _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(factor),
                                        reinterpret_cast<__m512bh>(pairs[v]));
      }
    }
  }
  for (std::int64_t r = 0; r < kSide; ++r)
    for (std::int64_t v = 0; v < kVectors; ++v)
      _mm512_mask_storeu_ps(out + r * args.out_stride + v * kLanes, some[v], sums[r][v]);
}

template <std::int64_t kSide>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void add_square(
    const BlockSums<BFloat16>& args) {
  constexpr std::int64_t kVectors = 16 / kSide;  // sixteen vectors of sums
  constexpr std::int64_t kWidth = kVectors * kLanes;
  std::int64_t column = 0;
  for (; column + kWidth <= args.z; column += kWidth) add_tile<kSide, kVectors, true>(args, column);
  if (column < args.z) add_tile<kSide, kVectors, false>(args, column);
}

bool has_pair_sums() {
  static const bool has = __builtin_cpu_supports("avx512bf16") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
}
}  // namespace

bool pair_sums_are_fast() {
  static const bool is_amd = __builtin_cpu_is("amd") != 0;
  return has_pair_sums() && is_amd;
}

bool pair_sums(const BlockSums<BFloat16>& sums) noexcept {
  if (!has_pair_sums() || sums.rows != sums.cols) return false;
  if (sums.rows == 4) return add_square<4>(sums), true;
  if (sums.rows == 8) return add_square<8>(sums), true;
  if (sums.rows == 16) return add_square<16>(sums), true;
  return false;
}

#else

bool pair_sums_are_fast() { return false; }
bool pair_sums(const BlockSums<BFloat16>&) noexcept { return false; }

#endif

}  // namespace tessera::codelets::internal
