// The search for the largest gradients by a shortlist, beside the exact one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;
using sparse::Csr;
using test::message_of;
using testing::HasSubstr;

Matrix<float> drawn(std::int64_t rows, std::int64_t cols, Random& random) {
  Matrix<float> made(rows, cols);
  for (float& v : made.elements()) v = float(std::pow(random.unit() - 0.5, 3));
  return made;
}

// Returns the product of a drawn matrix of so many columns and another one, so that many columns
// have few causes, as those of a batch in training.
Matrix<float> of_rank(std::int64_t rank, std::int64_t rows, std::int64_t cols, Random& random) {
  const Matrix<float> left = drawn(rows, rank, random), right = drawn(rank, cols, random);
  Matrix<float> made(rows, cols);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < rank; ++i)
      for (std::int64_t c = 0; c < cols; ++c) made(r, c) += left(r, i) * right(i, c);
  return made;
}

// Returns the share of the exact places that a shortlist of one place more finds.
double found_by_one_more(const Csr<float>& taken, std::span<const GradientBatch> batches,
                         std::int64_t k, Executor& executor) {
  const auto exact = exact_gradients({taken, batches, k, BlockScore::Sum}, executor);
  const auto found =
      shortlisted_gradients({taken, batches, k, BlockScore::Sum}, {k + 1, 9}, executor);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_EQ(std::ssize(found), k);
  std::vector<BlockAt> both;
  std::set_intersection(exact.begin(), exact.end(), found.begin(), found.end(),
                        std::back_inserter(both));
  return double(both.size()) / double(k);
}

TEST(Shortlist, FindsTheSameWhereFewCausesMakeTheGradient) {
  constexpr std::int64_t kWanted = 1024;
  const auto one = make_executor(1), two = make_executor(2);
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{256, 320}, {320, 256}}) {
    Random random(7);
    std::vector<Matrix<float>> operands;
    for (int i = 0; i < 2; ++i) {
      operands.push_back(of_rank(10, rows, 512, random));
      operands.push_back(drawn(cols, 512, random));
    }
    // An operand of any strides.
    const std::vector<GradientBatch> batches = {{operands[0].view(), operands[1].view()},
                                                {operands[2].view().sub({0, rows}, {0, 500}),
                                                 operands[3].view().sub({0, cols}, {12, 512})}};
    const Csr<float> taken = sparse::random_pattern(rows, cols, {}, 1.0 / 64, 3);
    EXPECT_GT(found_by_one_more(taken, batches, kWanted, *one), 0.995);
    const auto find = [&](std::int64_t candidates, Executor& executor) {
      return shortlisted_gradients({taken, batches, kWanted, BlockScore::Sum}, {candidates, 9},
                                   executor);
    };
    EXPECT_EQ(find(4 * kWanted, *one), find(4 * kWanted, *two));
    EXPECT_EQ(find(0, *one), exact_gradients({taken, batches, kWanted, BlockScore::Sum}, *one));
  }
}

// The sum of the columns is small beside each column, as late in training.
TEST(Shortlist, FindsTheLargestOfColumnsThatCancel) {
  constexpr std::int64_t kWide = 256, kColumns = 512, kWanted = 200;
  Random random(5);
  Matrix<float> q(kWide, kColumns), s(kWide, kColumns);
  for (std::int64_t r = 0; r < kWide; ++r) {
    const double in_q = 0.1 * (random.unit() - 0.5), in_s = random.unit();
    for (std::int64_t z = 0; z < kColumns; ++z) {
      q(r, z) = float(in_q + (random.unit() < 0.5 ? -1 : 1));
      s(r, z) = float(in_s + 0.01 * (random.unit() - 0.5));
    }
  }
  const GradientBatch batch{q.view(), s.view()};
  const Csr<float> taken = sparse::random_pattern(kWide, kWide, {}, 1.0 / 64, 3);
  EXPECT_GT(found_by_one_more(taken, {&batch, 1}, kWanted, *make_executor(1)), 0.95);
}

TEST(Shortlist, SearchesExactlyWhereItWouldNotPay) {
  constexpr std::int64_t kWanted = 20;
  Random random(3);
  const auto executor = make_executor(1);
  for (const std::int64_t columns : {3, 0}) {
    const Matrix<float> q = drawn(32, columns, random), s = drawn(48, columns, random);
    const GradientBatch batch{q.view(), s.view()};
    const Csr<float> taken = sparse::random_pattern(32, 48, {}, 0.1, 3);
    EXPECT_EQ(found_by_one_more(taken, {&batch, 1}, kWanted, *executor), 1);
  }
}

TEST(Shortlist, ListsPlacesOfNoGradientAndNamesThoseThatAreNotFinite) {
  const auto executor = make_executor(1);
  Random random(4);
  Matrix<float> q(256, 512);
  const Matrix<float> s = drawn(256, 512, random);
  const GradientBatch batch{q.view(), s.view()};
  const Csr<float> taken = sparse::random_pattern(256, 256, {}, 1.0 / 64, 3);
  const auto find = [&] {
    return shortlisted_gradients({taken, {&batch, 1}, 10, BlockScore::Sum}, {40, 9}, *executor);
  };
  EXPECT_EQ(find(), exact_gradients({taken, {&batch, 1}, 10, BlockScore::Sum}, *executor));
  q(200, 7) = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of(find), HasSubstr("block row 200"));
}

}  // namespace
}  // namespace tessera::train
