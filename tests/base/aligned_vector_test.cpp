#include "tessera/base/aligned_vector.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>

namespace tessera {
namespace {

constexpr std::size_t kMebi = 1024 * 1024;

std::size_t offset_in(const void* memory, std::size_t boundary) {
  return reinterpret_cast<std::uintptr_t>(memory) % boundary;
}

TEST(AlignedVector, BeginsACacheLineAndFromOneMebibyteOnALargePage) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{65}, kMebi - 1}) {
    const AlignedVector<char> small(bytes);
    EXPECT_EQ(offset_in(small.data(), 64), 0u) << bytes;
  }
  for (const std::size_t bytes : {kMebi, 2 * kMebi, 2 * kMebi + 1, 3 * kMebi, 5 * kMebi - 1}) {
    const AlignedVector<char> large(bytes);
    EXPECT_EQ(offset_in(large.data(), 2 * kMebi), 0u) << bytes;
  }
}

TEST(AlignedVector, KeepsItsElementsWhenItGrowsIntoLargePages) {
  AlignedVector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 600'000; ++i) numbers.push_back(i);
  AlignedVector<std::uint32_t> expected(600'000);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(numbers, expected);
}

TEST(WantLargePages, TakesMemoryOfAnySizeAnywhere) {
  AlignedVector<char> memory(3 * kMebi, 'x');
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, 2 * kMebi})
    want_large_pages(memory.data() + 7, bytes);
  EXPECT_EQ(memory, AlignedVector<char>(3 * kMebi, 'x'));
}

}  // namespace
}  // namespace tessera
