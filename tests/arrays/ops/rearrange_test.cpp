#include "tessera/arrays/ops/rearrange.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Kind;
using test::Shape;

Shape random_order(Random& random, std::int64_t rank) {
  Shape order = test::range_of(0, rank);
  for (std::int64_t d = rank; d-- > 1;)
    std::swap(order[std::size_t(d)], order[std::size_t(random.below(d + 1))]);
  return order;
}

struct Permutes {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const Dense from = made.view_truth();
    const Shape order = random_order(random, std::ssize(from.shape));
    Dense wanted{{}, {}};
    for (const std::int64_t d : order) wanted.shape.push_back(from.shape[std::size_t(d)]);
    for (std::int64_t i = 0; i < std::ssize(from.values); ++i) {
      const Shape at = test::index_at(wanted.shape, i);
      Shape source(at.size());
      for (std::size_t d = 0; d < at.size(); ++d) source[std::size_t(order[d])] = at[d];
      wanted.values.push_back(from.values[std::size_t(test::position_at(from.shape, source))]);
    }
    expect_equal(test::read(permute(made.view, order, test::two_threads())), wanted, "permute");
  }
};

TEST(ArrayRearrange, PermutesDimensions) { test::for_random_cases(300, Permutes()); }

struct Reshapes {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const Dense from = made.view_truth();
    Shape shape;  // neighbours are joined and dimensions of length 1 added
    for (const std::int64_t length : from.shape) {
      if (random.below(4) == 0) shape.push_back(1);
      if (!shape.empty() && random.below(2) == 0)
        shape.back() *= length;
      else
        shape.push_back(length);
    }
    const Dense wanted{shape, from.values};
    Shape asked = shape;
    if (random.below(2) == 0) asked[std::size_t(random.below(std::ssize(asked)))] = -1;
    const auto result = reshape(made.view, asked, test::two_threads());
    expect_equal(test::read(result), wanted, "reshape");
    const auto back = reshape(result, from.shape, test::two_threads());
    expect_equal(test::read(back), from, "reshape back");
    expect_equal(test::read(to_dense_array(made.view, test::two_threads())), from, "to dense");
  }
};

TEST(ArrayRearrange, ReshapesInRowMajorOrder) { test::for_random_cases(300, Reshapes()); }

struct Broadcasts {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(4), Kind<X>());
    const Dense from = made.view_truth();
    Shape shape = from.shape;
    for (std::int64_t& length : shape)
      if (length == 1) length = 1 + random.below(4);
    if (random.below(2) == 0) shape.insert(shape.begin(), 1 + random.below(3));
    const std::size_t added = shape.size() - from.shape.size();
    Dense wanted{shape, {}};
    for (std::int64_t i = 0; i < test::elements_of(shape); ++i) {
      const Shape at = test::index_at(shape, i);
      Shape source;
      for (std::size_t d = 0; d < from.shape.size(); ++d)
        source.push_back(from.shape[d] == 1 ? 0 : at[d + added]);
      wanted.values.push_back(from.values[std::size_t(test::position_at(from.shape, source))]);
    }
    expect_equal(test::read(broadcast(made.view, shape, test::two_threads())), wanted, "broadcast");
  }
};

TEST(ArrayRearrange, RepeatsDimensionsOfLengthOne) { test::for_random_cases(200, Broadcasts()); }

TEST(ArrayRearrange, SharesTheMemoryIfNothingMoves) {
  CooTensor<float> x({3, 4}, {0, 1, 2, 3}, {5, 6});
  CooTensor<float> added = reshape(x, {3, 1, 4}, test::one_thread());
  added.put({0, 0, 1}, 7);
  EXPECT_EQ(x.get({0, 1}), 7);
  CooTensor<float> moved = permute(added, {1, 0, 2}, test::one_thread());
  moved.put({0, 2, 3}, 8);
  EXPECT_EQ(x.get({2, 3}), 8);
  CooTensor<float> turned = permute(x, {1, 0}, test::one_thread());
  turned.put({0, 0}, 9);
  EXPECT_EQ(x.get({0, 0}), 0);
}

TEST(ArrayRearrange, DenseArraysBecomeTensorsAndBack) {
  const DenseArray<std::int32_t> dense{{2, 2, 2}, {0, 1, 0, 0, 2, 0, 0, 3}};
  const auto tensor = to_tensor(dense, test::two_threads());
  EXPECT_EQ(tensor.nnz(), 3);
  EXPECT_EQ(tensor.get({1, 1, 1}), 3);
  EXPECT_EQ(to_dense_array(tensor, test::two_threads()), dense);
}

TEST(ArrayRearrange, DuplicatesAreAddedInTheirOrderIfAsked) {
  const auto x = sum_duplicates<float>({2, 3}, {1, 2, 0, 0, 1, 2, 1, 2}, {1e8f, 4, 1, -1e8f},
                                       test::two_threads());
  EXPECT_EQ(x.nnz(), 2);
  EXPECT_EQ(x.get({1, 2}), 1);  // sums are taken in double
  EXPECT_THROW(sum_duplicates<float>({2, 3}, {1, 3}, {1}, test::one_thread()), Error);
  EXPECT_THROW(sum_duplicates<float>({2, 3}, {1}, {1}, test::one_thread()), Error);
  EXPECT_THROW(
      sum_duplicates<std::int32_t>({1}, {0, 0}, {2'000'000'000, 2'000'000'000}, test::one_thread()),
      Error);
}

TEST(ArrayRearrange, RefusesShapesThatDoNotFit) {
  const CooTensor<float> x({2, 3});
  EXPECT_THROW(permute(x, {0, 0}, test::one_thread()), Error);
  EXPECT_THROW(permute(x, {0}, test::one_thread()), Error);
  EXPECT_THROW(reshape(x, {4, -1}, test::one_thread()), Error);
  EXPECT_THROW(reshape(x, {7}, test::one_thread()), Error);
  EXPECT_THROW(broadcast(x, {4, 3}, test::one_thread()), Error);
  EXPECT_EQ(reshape(x, {-1, 2}, test::one_thread()).shape(), (Shape{3, 2}));
}

TEST(ArrayRearrange, ALargePermutationIsTheSameForAnyNumberOfThreads) {
  Random random(7);
  std::vector<std::int32_t> at;
  std::vector<float> values;
  for (std::int32_t i = 0; i < 150'000; ++i) {
    at.insert(at.end(), {i / 500, i % 500, std::int32_t(random.below(70))});
    values.push_back(float(i));
  }
  const CooTensor<float> x({300, 500, 70}, at, values);
  for (const Shape& order : {Shape{1, 0, 2}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}}) {
    const auto moved = permute(x, order, test::two_threads());
    EXPECT_EQ(moved, permute(x, order, test::one_thread()));
    const Shape index = {123, 456, at[(123 * 500 + 456) * 3 + 2]};
    Shape there;
    for (const std::int64_t d : order) there.push_back(index[std::size_t(d)]);
    EXPECT_EQ(moved.get(there), float(123 * 500 + 456));
  }
}

}  // namespace
}  // namespace tessera::arrays
