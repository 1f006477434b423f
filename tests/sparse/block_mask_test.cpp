#include "tessera/sparse/block_mask.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::sparse {
namespace {

std::string drawing(const Csr<float>& mask) {
  const Matrix<float> dense = to_dense(mask);
  std::string text;
  for (std::int64_t r = 0; r < dense.rows(); ++r, text += "\n")
    for (std::int64_t c = 0; c < dense.cols(); ++c) text += dense(r, c) != 0 ? 'x' : '.';
  return text;
}

TEST(BlockMask, KeepsWhatItsNameSays) {
  EXPECT_EQ(drawing(causal_mask(4, {2, 2})), "x...\nxx..\nxxx.\nxxxx\n");
  EXPECT_EQ(causal_mask(4, {2, 2}).blocks(), 3) << "the block above the diagonal is not stored";
  EXPECT_EQ(drawing(window_mask(4, {1, 1}, 1, 0)), "xxxx\nxx..\nx.x.\nx..x\n");
  const Csr<float> all = random_mask(4, 4, {2, 2}, 1, 1);
  EXPECT_EQ(keep_triangle(all, Triangle::Lower), causal_mask(4, {2, 2}));
  EXPECT_EQ(drawing(keep_triangle(all, Triangle::Upper)), "xxxx\n.xxx\n..xx\n...x\n");
  EXPECT_EQ(random_mask(16, 8, {4, 4}, 0.5, 3).blocks(), 4);
  EXPECT_THROW(causal_mask(5, {2, 2}), Error);
  EXPECT_THROW(window_mask(4, {2, 2}, 0, -1), Error);
}

Csr<float> random_mask_of(std::uint64_t seed) {
  Random random(seed);
  constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {2, 3}};
  const BlockShape block = kBlocks[seed % 3];
  const std::uint64_t kind = seed % 4;
  const std::int64_t size = 12 * (1 + random.below(3));
  if (kind == 0) return causal_mask(size, block);
  if (kind == 1) return window_mask(size, block, 2, 3);
  if (kind == 2) return keep_triangle(random_mask(size, size, block, 0.4, seed), Triangle::Lower);
  return random_mask(size, size, block, 0.3, seed);
}

// The definition, in double, on the dense matrix.
TEST(Softmax, AndItsGradientAreThoseOfTheirDefinitions) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const Csr<float> mask = random_mask_of(seed);
    Random random(seed + 100);
    std::vector<float> scores(mask.values.size()), g(scores.size()), p(scores.size());
    for (float& s : scores) s = float(8 * random.unit() - 4);
    for (float& v : g) v = float(2 * random.unit() - 1);
    softmax_rows(mask, scores, p);
    std::vector<float> d(scores.size());
    softmax_rows_gradient(mask, p, g, d);
    const auto dense = [&](const std::vector<float>& values) {
      Csr<float> matrix = mask;
      matrix.values = values;
      return to_dense(matrix);
    };
    const Matrix<float> kept = to_dense(mask), s = dense(scores), pd = dense(p), gd = dense(g),
                        dd = dense(d);
    for (std::int64_t r = 0; r < mask.rows; ++r) {
      double sum = 0, dot = 0;
      for (std::int64_t c = 0; c < mask.cols; ++c)
        if (kept(r, c) != 0) sum += std::exp(double(s(r, c)));
      for (std::int64_t c = 0; c < mask.cols; ++c)
        if (kept(r, c) != 0) dot += std::exp(double(s(r, c))) / sum * double(gd(r, c));
      for (std::int64_t c = 0; c < mask.cols; ++c) {
        const double wanted = kept(r, c) != 0 ? std::exp(double(s(r, c))) / sum : 0;
        EXPECT_NEAR(double(pd(r, c)), wanted, 1e-6);
        EXPECT_NEAR(double(dd(r, c)), wanted * (double(gd(r, c)) - dot), 1e-6);
      }
    }
    const auto executor = make_executor(3);
    std::vector<float> in_place = scores;
    softmax_rows(mask, in_place, in_place, executor.get());
    EXPECT_EQ(in_place, p);
    std::vector<float> over = p;
    softmax_rows_gradient(mask, over, g, over, executor.get());
    EXPECT_EQ(over, d);
  }
}

TEST(Softmax, HasZerosWhereNothingIsKeptAndRefusesWrongSizes) {
  const Csr<float> mask = causal_mask(4, {2, 2});
  std::vector<float> scores(mask.values.size(), -INFINITY), p(scores.size(), 7);
  softmax_rows(mask, scores, p);
  for (const float value : p) EXPECT_EQ(value, 0);
  scores.assign(scores.size(), 1000);  // no overflow
  softmax_rows(mask, scores, p);
  EXPECT_EQ(p[0], 1);
  EXPECT_EQ(p[1], 0);
  std::vector<float> few(3);
  EXPECT_THROW(softmax_rows(mask, few, p), Error);
  EXPECT_THROW(softmax_rows_gradient(mask, p, few, p), Error);
  EXPECT_TRUE(p[2] > 0);
}

}  // namespace
}  // namespace tessera::sparse
