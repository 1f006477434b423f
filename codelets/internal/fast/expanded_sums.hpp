#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/packed_rows.hpp"

namespace tessera::codelets::internal {

// The 32 sums of a packed row in two vectors of sixteen: the halves of a 32-bit word for BFloat16,
// which are taken apart without a shuffle, and the halves of a vector for Half.
template <class T>
struct ExpandedLanes {
  std::array<float, kSumLanes> first{}, second{};

  void add(std::int64_t lane, T value, T in) {
    constexpr bool kAlternates = std::is_same_v<T, BFloat16>;
    const bool is_second = kAlternates ? lane % 2 != 0 : lane >= kSumLanes;
    float& sum =
        (is_second ? second : first)[std::size_t(kAlternates ? lane / 2 : lane % kSumLanes)];
    sum = add_product(sum, value, in);
  }

  // The sum is never -0.
  float sum() {
    for (std::size_t i = 0; i < first.size(); ++i) first[i] += second[i];
    return add_lanes(first) + 0.0f;
  }
};

// The vector kernels of packed_sums().
void expanded_sums(const PackedSums<Half>& sums) noexcept;
void expanded_sums(const PackedSums<BFloat16>& sums) noexcept;

// The same for CPUs that expand 16-bit elements in one instruction (AVX512_VBMI2), which Highway
// 1.0.3 does not name. Returns false, without results, on all others.
bool expanded_sums_vbmi2(const PackedSums<Half>& sums) noexcept;
bool expanded_sums_vbmi2(const PackedSums<BFloat16>& sums) noexcept;

}  // namespace tessera::codelets::internal
