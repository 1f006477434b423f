#include "tessera/train/loss/cross_entropy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::train {
namespace {

using testing::HasSubstr;

// The loss of one column in double.
double loss_of(const Matrix<float>& scores, std::int64_t classes, std::int64_t c, int label) {
  double largest = scores(0, c), sum = 0;
  for (std::int64_t r = 1; r < classes; ++r) largest = std::max(largest, double(scores(r, c)));
  for (std::int64_t r = 0; r < classes; ++r) sum += std::exp(double(scores(r, c)) - largest);
  return std::log(sum) + largest - double(scores(label, c));
}

TEST(CrossEntropy, AgreesWithDoubleFromSmallScoresToLargeOnes) {
  for (const float scale : {1e-3f, 1.0f, 30.0f, 1e4f}) {
    Matrix<float> scores = random_matrix<float>(10, 37, 3);
    for (float& v : scores.elements()) v *= scale;
    std::vector<std::uint8_t> labels;
    for (int c = 0; c < 37; ++c) labels.push_back(std::uint8_t(c % 10));
    Matrix<float> gradient(10, 37);
    const Loss loss = cross_entropy(scores.view(), 10, labels, gradient.view());
    double sum = 0;
    std::int64_t right = 0;
    for (std::int64_t c = 0; c < 37; ++c) {
      const int label = labels[std::size_t(c)];
      sum += loss_of(scores, 10, c, label);
      std::int64_t best = 0;
      for (std::int64_t r = 0; r < 10; ++r) {
        if (scores(r, c) > scores(best, c)) best = r;
        const double p = std::exp(double(scores(label, c)) - double(scores(r, c)));
        const double softmax = std::exp(-loss_of(scores, 10, c, int(r)));
        EXPECT_NEAR(gradient(r, c), (softmax - (r == label)) / 37, 3e-7) << p;
      }
      right += best == label;
    }
    EXPECT_NEAR(loss.sum, sum, 1e-5 * (1 + sum));
    EXPECT_EQ(loss.right, right);
  }
}

TEST(CrossEntropy, HasTheFiguresOfItsExample) {
  const Matrix<float> scores(2, 1);
  Matrix<float> gradient(2, 1);
  const std::vector<std::uint8_t> labels = {0};
  const Loss loss = cross_entropy(scores.view(), 2, labels, gradient.view());
  EXPECT_NEAR(loss.sum, std::log(2), 1e-7);
  EXPECT_EQ(loss.right, 1);
  EXPECT_FLOAT_EQ(gradient(0, 0), -0.5f);
  EXPECT_FLOAT_EQ(gradient(1, 0), 0.5f);
}

TEST(CrossEntropy, IgnoresRowsAndColumnsOfPadding) {
  Matrix<float> scores = random_matrix<float>(16, 8, 1), gradient(16, 8), inner(10, 5);
  for (float& v : gradient.elements()) v = 7;
  const std::vector<std::uint8_t> labels = {0, 1, 2, 3, 9};
  const Loss loss = cross_entropy(scores.view(), 10, labels, gradient.view());
  const auto part = scores.view().sub({0, 10}, {0, 5});
  const Loss wanted = cross_entropy(part, 10, labels, inner.view());
  EXPECT_EQ(loss.sum, wanted.sum);
  EXPECT_EQ(loss.right, wanted.right);
  for (std::int64_t r = 0; r < 16; ++r)
    for (std::int64_t c = 0; c < 8; ++c)
      EXPECT_EQ(gradient(r, c), r < 10 && c < 5 ? inner(r, c) : 0);
}

TEST(CrossEntropy, OfScoresThatAreNotFiniteIsNotFinite) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Matrix<float> scores(3, 2), gradient(3, 2);
    scores(1, 1) = bad;
    const std::vector<std::uint8_t> labels = {0, 1};
    EXPECT_FALSE(std::isfinite(cross_entropy(scores.view(), 3, labels, gradient.view()).sum));
  }
}

TEST(CrossEntropy, RefusesLabelsAndShapesThatDoNotFit) {
  const Matrix<float> scores(3, 2);
  Matrix<float> gradient(3, 2), narrow(3, 1);
  const auto refusal = [&](std::int64_t classes, const std::vector<std::uint8_t>& labels,
                           Matrix<float>& into) {
    return test::message_of([&] { cross_entropy(scores.view(), classes, labels, into.view()); },
                            ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal(3, {0, 3}, gradient), HasSubstr("label 3 of column 1"));
  EXPECT_THAT(refusal(4, {0, 1}, gradient), HasSubstr("4 classes"));
  EXPECT_THAT(refusal(3, {}, gradient), HasSubstr("0 labels"));
  EXPECT_THAT(refusal(3, {0, 1, 2}, gradient), HasSubstr("3 labels"));
  EXPECT_THAT(refusal(3, {0, 1}, narrow), HasSubstr("3 x 1"));
}

}  // namespace
}  // namespace tessera::train
