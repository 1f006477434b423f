#include "tessera/codelets/softmax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/cost/softmax_cycles.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

// Rows of blocks with `run` columns; run 0: of single elements.
struct Case {
  std::vector<std::int32_t> begin{0};
  std::vector<std::uint32_t> kept;
  std::int64_t run = 0;
  float scale = 1;

  Case(std::int64_t width, const std::vector<std::int64_t>& blocks_of_rows, double kept_share,
       float factor, std::uint64_t seed)
      : run(width), scale(factor) {
    for (const std::int64_t blocks : blocks_of_rows)
      begin.push_back(begin.back() + std::int32_t(blocks * std::max<std::int64_t>(width, 1)));
    if (kept_share >= 1) return;
    Random random(seed);
    kept.resize(std::size_t(begin.back() / 32 + 1));
    for (std::int64_t i = 0; i < begin.back(); ++i)
      if (random.unit() < kept_share) kept[std::size_t(i / 32)] |= 1U << (i % 32);
  }

  SoftmaxRows rows() const { return {begin, run, kept, scale}; }
  bool is_kept(std::int64_t i) const {
    return kept.empty() || (kept[std::size_t(i / 32)] >> (i % 32) & 1) != 0;
  }
};

std::vector<Case> cases() {
  return {Case(0, {1, 0, 7, 64, 65, 200}, 1, 1, 1),
          Case(16, {1, 3, 0, 9}, 1, 0.25f, 2),
          Case(4, {5, 2, 1, 31}, 0.6, 2, 3),
          Case(3, {7, 13, 1}, 0.3, 1, 4),
          Case(8, {2, 2, 2}, 0.0, 1, 5),
          Case(17, {3, 11}, 0.9, -1, 6),
          Case(80, {2, 1}, 0.5, 1, 7),
          Case(0, {13, 17, 100}, 0.5, 0.5f, 8)};
}

template <class T>
std::vector<T> random_values(const Case& c, double least, double most, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> values(static_cast<std::size_t>(c.begin.back()));
  for (T& v : values) v = T(float(least + (most - least) * random.unit()));
  return values;
}

template <class T>
class SoftmaxOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(SoftmaxOf, Types);

template <class T>
double tolerance() {
  return std::is_same_v<T, float> ? 4e-6 : std::is_same_v<T, Half> ? 2e-3 : 2e-2;
}

TYPED_TEST(SoftmaxOf, AgreesWithDoublePrecision) {
  using T = TypeParam;
  for (const Case& c : cases()) {
    const auto scores = random_values<T>(c, -20, 20, 9), gradient = random_values<T>(c, -1, 1, 10);
    std::vector<T> p(scores.size()), g(scores.size());
    softmax_reference(c.rows(), scores.data(), p.data());
    softmax_gradient_reference(c.rows(), p.data(), gradient.data(), g.data());
    for (std::size_t row = 0; row + 1 < c.begin.size(); ++row) {
      double most = -std::numeric_limits<double>::infinity(), sum = 0, dot = 0;
      const auto each = [&](const auto& visit) {
        for (std::int64_t i = c.begin[row]; i < c.begin[row + 1]; ++i)
          if (c.is_kept(i)) visit(std::size_t(i));
      };
      const auto score = [&](std::size_t i) { return double(c.scale) * double(float(scores[i])); };
      each([&](std::size_t i) { most = std::max(most, score(i)); });
      each([&](std::size_t i) { sum += std::exp(score(i) - most); });
      each([&](std::size_t i) { dot += double(float(p[i])) * double(float(gradient[i])); });
      for (std::int64_t i = c.begin[row]; i < c.begin[row + 1]; ++i)
        if (!c.is_kept(i)) {
          EXPECT_EQ(float(p[std::size_t(i)]), 0);
          EXPECT_EQ(float(g[std::size_t(i)]), 0);
        }
      each([&](std::size_t i) {
        EXPECT_NEAR(float(p[i]), std::exp(score(i) - most) / sum, tolerance<T>());
        EXPECT_NEAR(float(g[i]),
                    double(c.scale) * double(float(p[i])) * (double(float(gradient[i])) - dot),
                    tolerance<T>());
      });
    }
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TYPED_TEST(SoftmaxOf, HasTheBitsOfTheReferenceOnEveryTargetAlsoInPlace) {
  using T = TypeParam;
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    const internal::UseSimdTarget use(target);
    for (const Case& c : cases())
      for (const double range : {1.0, 30.0, 500.0}) {
        const auto scores = random_values<T>(c, -range, range, 11),
                   gradient = random_values<T>(c, -1, 1, 12);
        std::vector<T> p(scores.size()), q = scores, g(scores.size()), h = gradient;
        softmax_reference(c.rows(), scores.data(), p.data());
        softmax(c.rows(), q.data(), q.data());
        EXPECT_TRUE(same_bits(p, q)) << target.name << " run " << c.run;
        softmax_gradient_reference(c.rows(), p.data(), gradient.data(), g.data());
        softmax_gradient(c.rows(), q.data(), h.data(), h.data());
        EXPECT_TRUE(same_bits(g, h)) << target.name << " run " << c.run;
      }
  }
}

// Blocks of 3 x 5 as a Csr stores them, and the same rows one after the other.
TEST(Softmax, OfABlockRowIsThatOfItsRows) {
  constexpr std::int64_t kHeight = 3, kRun = 5, kBlocks = 4;
  const std::vector<std::int32_t> bands{0, kHeight * kRun * kBlocks},
      rows{0, kRun * kBlocks, 2 * kRun * kBlocks, 3 * kRun * kBlocks};
  Random random(4);
  std::vector<float> blocks(std::size_t(bands.back())), in_rows(blocks.size()), out(blocks.size()),
      wanted(blocks.size());
  for (float& v : blocks) v = float(10 * random.unit());
  const auto place_in_blocks = [&](std::int64_t r, std::int64_t c) {
    return std::size_t((c / kRun * kHeight + r) * kRun + c % kRun);
  };
  const auto for_each = [&](const auto& visit) {
    for (std::int64_t r = 0; r < kHeight; ++r)
      for (std::int64_t c = 0; c < kRun * kBlocks; ++c)
        visit(std::size_t(r * kRun * kBlocks + c), place_in_blocks(r, c));
  };
  for_each([&](std::size_t row, std::size_t block) { in_rows[row] = blocks[block]; });
  softmax(SoftmaxRows{.row_begin = bands, .run = kRun, .height = kHeight}, blocks.data(),
          out.data());
  softmax_reference(SoftmaxRows{.row_begin = rows, .run = kRun}, in_rows.data(), wanted.data());
  for_each([&](std::size_t row, std::size_t block) { EXPECT_EQ(out[block], wanted[row]); });
}

TEST(Softmax, MakesARowOfMinusInfinityZeroAndKeepsANan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::int32_t> begin{0, 2, 5};
  std::vector<float> scores{-kInfinity, -kInfinity, 1, std::nanf(""), 2}, out(5);
  softmax(SoftmaxRows{.row_begin = begin}, scores.data(), out.data());
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  EXPECT_TRUE(std::isnan(out[3]));
}

// Rows whose products scale * score are beyond the range of float: above, below, and both.
TYPED_TEST(SoftmaxOf, ComparesScoresWhoseProductsAreBeyondTheRangeOfFloat) {
  using T = TypeParam;
  constexpr std::int64_t kRow = 8, kRows = 6;
  const float huge = std::is_same_v<T, Half> ? 6e4f : 3e38f;
  const std::vector<std::vector<float>> scores{
      {1, 1, 0.5f, -1, 0, -0.5f, 1, -1},         // the two products with 1 are infinite
      {-1, -0.5f, -1, -1, -1, -0.5f, -1, -1},    // all products are minus infinity
      {0, 0, 0, 0, 0, 0, 0, 0},                  // none is
      {1, 0.25f, 0.25f, 0.25f, 0, 0, 0, 0},      // one is
      {-0.25f, -1, -1, -1, -1, -1, -1, -0.25f},  //
      {1, 1, 1, 1, 1, 1, 1, 1}};
  std::vector<T> values;
  for (const auto& row : scores)
    for (const float v : row) values.push_back(T(v * huge));
  std::vector<std::int32_t> begin;
  for (std::int64_t r = 0; r <= kRows; ++r) begin.push_back(std::int32_t(r * kRow));
  for (const std::int64_t run : {std::int64_t{0}, kRow})
    for (const float scale : {1e36f, -1e36f}) {
      const SoftmaxRows rows{.row_begin = begin, .run = run, .scale = scale};
      std::vector<T> reference(values.size());
      softmax_reference(rows, values.data(), reference.data());
      for (std::size_t r = 0; r < std::size_t(kRows); ++r) {
        const auto sign = [&](float v) { return scale > 0 ? v : -v; };
        float best = sign(scores[r][0]);
        for (const float v : scores[r]) best = std::max(best, sign(v));
        const auto winners =
            std::ranges::count_if(scores[r], [&](float v) { return sign(v) == best; });
        for (std::size_t i = 0; i < std::size_t(kRow); ++i)
          EXPECT_NEAR(float(reference[r * std::size_t(kRow) + i]),
                      sign(scores[r][i]) == best ? 1.0 / double(winners) : 0.0, tolerance<T>())
              << "row " << r << ", place " << i << ", scale " << scale;
      }
      for (const auto& target : internal::simd_targets()) {
        if (!target.runs_here) continue;
        const internal::UseSimdTarget use(target);
        std::vector<T> in_place = values;
        softmax(rows, in_place.data(), in_place.data());
        EXPECT_TRUE(same_bits(in_place, reference)) << target.name << ", run " << run;
      }
    }
}

TEST(Softmax, KeepsTheMaskInARowBeyondTheRangeOfFloat) {
  const std::vector<std::int32_t> begin{0, 4};
  const std::vector<std::uint32_t> kept{0b0110};
  const std::vector<float> scores{3e38f, 2e38f, 1e38f, std::nanf("")};
  std::vector<float> out(4), reference(4);
  const SoftmaxRows rows{.row_begin = begin, .kept = kept, .scale = 10};
  softmax(rows, scores.data(), out.data());
  softmax_reference(rows, scores.data(), reference.data());
  EXPECT_EQ(out, (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(reference, out);
}

// Three rows of two full blocks of four on one worker, counted by hand.
TEST(SoftmaxCycles, CountTheInstructionsOfTheSlowestWorker) {
  const SoftmaxWork work{.rows = 3, .runs = 6, .values = 24, .masked = 0};
  EXPECT_EQ(softmax_cycles(work, DataType::Float, 6),
            Cycles(6 * (15 + 3 * 12 + 3 * 3 * 6 + 12 * 16)));
  EXPECT_EQ(softmax_cycles(work, DataType::Half, 6),
            Cycles(6 * (15 + 3 * 12 + 3 * 3 * 6 + 12 * 21)));
  EXPECT_EQ(softmax_gradient_cycles(work, DataType::Float, 6),
            Cycles(6 * (15 + 3 * 4 + 2 * 3 * 6 + 12 * 9)));
  EXPECT_EQ(softmax_cycles({}, DataType::Float, 6), Cycles());
}

}  // namespace
}  // namespace tessera::codelets
