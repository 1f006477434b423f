#include "tessera/train/loss/cross_entropy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/codelets/loss.hpp"
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
    std::vector<std::int32_t> labels;
    for (int c = 0; c < 37; ++c) labels.push_back(std::int32_t(c % 10));
    Matrix<float> gradient(10, 37);
    const Loss loss = cross_entropy(scores.view(), labels, gradient.view());
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
  const std::vector<std::int32_t> labels = {0};
  const Loss loss = cross_entropy(scores.view(), labels, gradient.view());
  EXPECT_NEAR(loss.sum, std::log(2), 1e-7);
  EXPECT_EQ(loss.right, 1);
  EXPECT_FLOAT_EQ(gradient(0, 0), -0.5f);
  EXPECT_FLOAT_EQ(gradient(1, 0), 0.5f);
}

// The loss of the tiles (codelets/loss.hpp) on the same columns.
TEST(CrossEntropy, HasTheBitsOfTheTilesAlsoForAPartOfAMatrix) {
  const Matrix<float> scores = random_matrix<float>(16, 8, 1);
  const auto part = scores.view().sub({3, 13}, {2, 7});
  Matrix<float> gradient(10, 5), tile(10, 5);
  for (std::int64_t r = 0; r < 10; ++r)
    for (std::int64_t c = 0; c < 5; ++c) tile(r, c) = part(r, c);
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 9};
  const Loss loss = cross_entropy(part, labels, gradient.view());
  const float wanted =
      codelets::softmax_cross_entropy<float>({10, 5, 5}, labels.data(), tile.elements().data());
  EXPECT_EQ(loss.sum, 5 * double(wanted));
  EXPECT_EQ(gradient, tile);
}

TEST(CrossEntropy, OfScoresThatAreNotFiniteIsNotFinite) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Matrix<float> scores(3, 2), gradient(3, 2);
    scores(1, 1) = bad;
    const std::vector<std::int32_t> labels = {0, 1};
    EXPECT_FALSE(std::isfinite(cross_entropy(scores.view(), labels, gradient.view()).sum));
  }
}

TEST(CrossEntropy, RefusesLabelsAndShapesThatDoNotFit) {
  const Matrix<float> scores(3, 2);
  Matrix<float> gradient(3, 2), narrow(3, 1);
  const auto refusal = [&](const std::vector<std::int32_t>& labels, MatrixView<float> into) {
    return test::message_of([&] { cross_entropy(scores.view(), labels, into); },
                            ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal({0, 3}, gradient.view()), HasSubstr("label 3 of column 1"));
  EXPECT_THAT(refusal({-1, 3}, gradient.view()), HasSubstr("label -1 of column 0"));
  EXPECT_THAT(refusal({}, gradient.view()), HasSubstr("0 labels"));
  EXPECT_THAT(refusal({0, 1, 2}, gradient.view()), HasSubstr("3 labels"));
  EXPECT_THAT(refusal({0, 1}, narrow.view()), HasSubstr("3 x 1"));
  Matrix<float> wide(3, 4);
  EXPECT_THAT(refusal({0, 1}, wide.view().sub({0, 3}, {0, 2})), HasSubstr("in rows of 4"));
}

}  // namespace
}  // namespace tessera::train
