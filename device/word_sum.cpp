#include "tessera/base/vector_targets.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/word_sum.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "tessera/device/internal/word_sum.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::device::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint64_t>;

// Several sums, because an addition waits for the one before it to the same sum.
std::uint64_t add_words(const std::byte* data, std::int64_t bytes) {
  constexpr std::int64_t kVectors = 4, kWordBytes = sizeof(std::uint64_t);
  const Words words;
  const auto vector_bytes = kWordBytes * std::int64_t(hn::Lanes(words));
  hn::Vec<Words> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(words);
  const auto load = [&](const std::byte* from) {
    return hn::LoadU(words, reinterpret_cast<const std::uint64_t*>(from));
  };
  for (; bytes >= kVectors * vector_bytes; bytes -= kVectors * vector_bytes)
    for (std::int64_t v = 0; v < kVectors; ++v, data += vector_bytes)
      sums[v] = hn::Add(sums[v], load(data));
  for (; bytes >= vector_bytes; bytes -= vector_bytes, data += vector_bytes)
    sums[0] = hn::Add(sums[0], load(data));
  std::uint64_t rest = 0;
  for (; bytes > 0; bytes -= kWordBytes, data += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, std::size_t(std::min(bytes, kWordBytes)));
    rest += word;
  }
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return rest + hn::GetLane(hn::SumOfLanes(words, sum));
}

}  // namespace tessera::device::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::device::internal {
HWY_EXPORT(add_words);

std::uint64_t sum_of_words(const std::byte* data, std::int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(add_words)(data, bytes);
}

}  // namespace tessera::device::internal
#endif
