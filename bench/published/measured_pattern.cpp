#include "tessera/bench/published/measured_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::bench {
namespace {

// The minimal standard generator, and the distribution that libstdc++ makes of it.
class MinimalStandard {
 public:
  explicit MinimalStandard(std::uint32_t seed)
      : state_(seed % kModulus == 0 ? 1 : seed % kModulus) {}

  // The number of values that the generator can return, minus 1.
  static constexpr std::uint64_t kRange = 2147483645;

  // Returns a number in 0 .. most.
  std::uint64_t up_to(std::uint64_t most) {
    TESSERA_ASSERT(most < kRange);
    const std::uint64_t scale = kRange / (most + 1), past = (most + 1) * scale;
    for (;;) {
      const std::uint64_t value = next() - 1;
      if (value < past) return value / scale;
    }
  }

 private:
  static constexpr std::uint64_t kModulus = 2147483647;
  std::uint64_t next() { return state_ = state_ * 16807 % kModulus; }
  std::uint64_t state_;
};

// One draw gives two places, for element i and the next one.
void shuffle_in_pairs(std::vector<std::uint32_t>& numbers, MinimalStandard& random) {
  std::size_t i = 1;
  if (numbers.size() % 2 == 0) {
    std::swap(numbers[1], numbers[random.up_to(1)]);
    i = 2;
  }
  for (; i < numbers.size(); i += 2) {
    const std::uint64_t drawn = random.up_to((i + 1) * (i + 2) - 1);
    std::swap(numbers[i], numbers[drawn / (i + 2)]);
    std::swap(numbers[i + 1], numbers[drawn % (i + 2)]);
  }
}

}  // namespace

std::vector<std::uint32_t> libstdcxx_shuffle(std::uint32_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (count < 2) return numbers;
  MinimalStandard random(seed);
  if (MinimalStandard::kRange / count >= count) {
    shuffle_in_pairs(numbers, random);
    return numbers;
  }
  for (std::size_t i = 1; i < numbers.size(); ++i) std::swap(numbers[i], numbers[random.up_to(i)]);
  return numbers;
}

sparse::Csr<float> measured_pattern(std::int64_t side, BlockShape block, double density) {
  constexpr std::uint32_t kSeed = 123;
  sparse::Csr<float> result;
  result.rows = result.cols = side;
  result.block = block;
  const std::int64_t columns = result.block_cols(), places = result.block_rows() * columns;
  TESSERA_ASSERT(places < std::int64_t(MinimalStandard::kRange));
  std::vector<std::uint32_t> chosen = libstdcxx_shuffle(std::uint32_t(places), kSeed);
  const float wanted = float(density) * float(places);
  chosen.resize(std::min(chosen.size(), std::size_t(std::ceil(wanted))));
  std::sort(chosen.begin(), chosen.end());
  result.row_begin.assign(std::size_t(result.block_rows()) + 1, 0);
  for (const std::uint32_t place : chosen) {
    result.col.push_back(std::int32_t(place % columns));
    ++result.row_begin[std::size_t(place / columns) + 1];
  }
  std::partial_sum(result.row_begin.begin(), result.row_begin.end(), result.row_begin.begin());
  result.values.assign(chosen.size() * std::size_t(block.area()), 1);
  return result;
}

}  // namespace tessera::bench
