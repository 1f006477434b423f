#include "tessera/sparse/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/internal/drawing.hpp"
#include "tessera/sparse/rules.hpp"

namespace tessera::sparse {
namespace {

// Chooses exactly `count` places, every set equally likely: it visits all places and takes each
// with probability (places still needed) / (places left).
std::vector<std::int64_t> choose_by_walking(std::int64_t places, std::int64_t count,
                                            Random& random) {
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (std::int64_t place = 0; count > 0; ++place)
    if (random.below(places - place) < count) chosen.push_back(place), --count;
  return chosen;
}

// Chooses exactly `count` places by drawing until that many different ones are found. No place is
// preferred to another, so every set is equally likely. If at most 1 in 16 places is taken, few
// have to be drawn twice. The places drawn so far are bits.
std::vector<std::int64_t> choose_by_drawing(std::int64_t places, std::int64_t count,
                                            Random& random) {
  constexpr std::int64_t kBits = 64;
  std::vector<std::uint64_t> drawn(static_cast<std::size_t>(ceil_div(places, kBits)));
  // Bits of many places are in far caches, so several words are fetched together. A place counts as
  // found at most once, so no number too many is drawn.
  std::array<std::int64_t, 16> next;
  for (std::int64_t found = 0; found < count;) {
    const auto some = std::min<std::int64_t>(std::ssize(next), count - found);
    for (std::int64_t i = 0; i < some; ++i) {
      next[static_cast<std::size_t>(i)] = random.below(places);
      __builtin_prefetch(
          &drawn[static_cast<std::size_t>(next[static_cast<std::size_t>(i)] / kBits)]);
    }
    for (std::int64_t i = 0; i < some; ++i) {
      const std::int64_t place = next[static_cast<std::size_t>(i)];
      std::uint64_t& word = drawn[static_cast<std::size_t>(place / kBits)];
      const std::uint64_t bit = std::uint64_t{1} << (place % kBits);
      found += (word & bit) == 0;
      word |= bit;
    }
  }
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    for (std::uint64_t word = drawn[i]; word != 0; word &= word - 1)
      chosen.push_back(static_cast<std::int64_t>(i) * kBits + std::countr_zero(word));
  return chosen;
}

// Chooses the same places by sorting what was drawn, for so few that bits would be mostly zeros.
std::vector<std::int64_t> choose_by_sorting(std::int64_t places, std::int64_t count,
                                            Random& random) {
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  while (static_cast<std::int64_t>(chosen.size()) < count) {
    for (auto i = static_cast<std::int64_t>(chosen.size()); i < count; ++i)
      chosen.push_back(random.below(places));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }
  return chosen;
}

// Walking costs about 5 ns per place, drawing about 6 ns per block and 0.02 ns per place, and
// sorting about 80 ns per block. The bits of 1024 places take the memory of 16 blocks.
std::vector<std::int64_t> choose(std::int64_t places, std::int64_t count, Random& random) {
  if (places / 16 <= count) return choose_by_walking(places, count, random);
  if (places / 1024 <= count) return choose_by_drawing(places, count, random);
  return choose_by_sorting(places, count, random);
}

void draw_signs(Csr<float>& matrix, Random& random) {
  matrix.values.resize(static_cast<std::size_t>(
      checked_mul(matrix.blocks(), matrix.block.area(), "values of a matrix")));
  for (float& value : matrix.values) value = random.sign();
}

}  // namespace

void internal::check_drawing(std::int64_t rows, std::int64_t cols, BlockShape block,
                             double density) {
  if (rows < 1 || cols < 1)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("random_pattern: {} rows and {} columns; the minimum is 1", rows, cols));
  const std::string problem = size_problem(rows, cols, block);
  if (!problem.empty()) throw Error(ErrorCode::InvalidArgument, "random_pattern: " + problem);
  if (!(density >= 0 && density <= 1))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("random_pattern: density {} is outside 0..1; density is stored / all, "
                            "which is 1 - sparsity",
                            density));
}

Csr<float> random_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                          std::uint64_t seed) {
  internal::check_drawing(rows, cols, block, density);
  Csr<float> result;
  result.rows = rows, result.cols = cols, result.block = block;
  const std::int64_t block_cols = result.block_cols();
  const std::int64_t places = result.block_rows() * block_cols;
  const std::int64_t count =
      std::min<std::int64_t>(places, std::llround(density * static_cast<double>(places)));
  Random random(seed);
  const std::vector<std::int64_t> chosen = choose(places, count, random);
  result.col.reserve(chosen.size());
  result.row_begin.assign(static_cast<std::size_t>(result.block_rows()) + 1, 0);
  for (const std::int64_t place : chosen) {
    result.col.push_back(static_cast<std::int32_t>(place % block_cols));
    ++result.row_begin[static_cast<std::size_t>(place / block_cols) + 1];
  }
  for (std::size_t r = 1; r < result.row_begin.size(); ++r)
    result.row_begin[r] += result.row_begin[r - 1];
  draw_signs(result, random);
  return result;
}

std::vector<std::int64_t> random_choice(std::int64_t places, std::int64_t count,
                                        std::uint64_t seed) {
  if (count < 0 || count > places)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("random choice: {} of {} places; the number must be in 0..{}", count,
                            places, places));
  Random random(seed);
  return choose(places, count, random);
}

void fill_signs(Csr<float>& matrix, std::uint64_t seed, std::int64_t first) {
  Random random(seed);
  for (std::int64_t i = 0; i < first; ++i) random.sign();
  draw_signs(matrix, random);
}

}  // namespace tessera::sparse
