#include "tessera/arrays/ops/fold.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Kind;
using test::Shape;

constexpr Fold kExact[] = {Fold::Sum, Fold::Min, Fold::Max, Fold::Norm1, Fold::NormMax};

double truth_of(Fold fold, const std::vector<double>& values) {
  double sum = 0, magnitudes = 0, least = values[0], most = values[0];
  for (const double v : values) {
    sum += v;
    magnitudes += std::abs(v);
    least = std::fmin(least, v);
    most = std::fmax(most, v);
  }
  if (fold == Fold::Sum) return sum;
  if (fold == Fold::Norm1) return magnitudes;
  if (fold == Fold::Min) return least;
  if (fold == Fold::Max) return most;
  return std::fmax(std::abs(least), std::abs(most));
}

// The elements of a dense array by place of the dimensions that remain.
struct Groups {
  Shape shape;
  std::vector<std::vector<double>> values;
};

Groups groups_of(const Dense& dense, const std::vector<bool>& is_folded) {
  Groups groups;
  for (std::size_t d = 0; d < dense.shape.size(); ++d)
    if (!is_folded[d]) groups.shape.push_back(dense.shape[d]);
  groups.values.resize(std::size_t(test::elements_of(groups.shape)));
  for (std::int64_t i = 0; i < std::ssize(dense.values); ++i) {
    const Shape index = test::index_at(dense.shape, i);
    Shape kept;
    for (std::size_t d = 0; d < index.size(); ++d)
      if (!is_folded[d]) kept.push_back(index[d]);
    groups.values[std::size_t(test::position_at(groups.shape, kept))].push_back(
        dense.values[std::size_t(i)]);
  }
  return groups;
}

struct Folds {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const Fold chosen = kExact[random.below(5)];
    Shape dims;
    std::vector<bool> is_folded(made.shape.size());
    for (std::size_t d = 0; d < made.shape.size(); ++d)
      if (random.below(2) == 0) {
        const auto rank = std::int64_t(made.shape.size());
        dims.push_back(std::int64_t(d) - (random.below(2) == 0 ? rank : 0));
        is_folded[d] = true;
      }
    const Groups groups = groups_of(made.view_truth(), is_folded);
    Dense wanted{groups.shape, {}};
    // A sum may be no number of a short type: the reference is rounded once, too.
    const auto rounded = [](double v) {
      return cast_value<double>(cast_value<SumOf<typename X::Value>>(v)) + 0.0;
    };
    for (const auto& values : groups.values)
      wanted.values.push_back(rounded(truth_of(chosen, values)));
    expect_equal(test::read(fold(chosen, made.view, dims, test::two_threads())), wanted,
                 to_string(chosen));
    const double all = rounded(truth_of(chosen, made.view_truth().values));
    EXPECT_EQ(cast_value<double>(fold_all(chosen, made.view, test::two_threads())), all)
        << to_string(chosen);
  }
};

TEST(ArrayFold, AccumulatesAlongAnyDimensions) { test::for_random_cases(500, Folds()); }

std::int64_t truth_of(Pick pick, const std::vector<double>& values) {
  const auto worth = [pick](double v) {
    return pick == Pick::Max ? v : pick == Pick::Min ? -v : std::abs(v);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (worth(values[i]) > worth(values[best])) best = i;
  return std::int64_t(best);
}

struct Picks {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    constexpr Pick kAll[] = {Pick::Max, Pick::Min, Pick::AbsMax};
    const Pick chosen = kAll[random.below(3)];
    const auto dim = std::size_t(random.below(std::int64_t(made.shape.size())));
    std::vector<bool> is_folded(made.shape.size());
    is_folded[dim] = true;
    const Groups groups = groups_of(made.view_truth(), is_folded);
    Dense wanted{groups.shape, {}};
    for (const auto& values : groups.values)
      wanted.values.push_back(double(truth_of(chosen, values)));
    const auto result = pick(chosen, made.view, std::int64_t(dim), test::two_threads());
    // A mapped array may store zeros, so places without a non-zero element may be stored too; a
    // place that is not stored has index 0.
    expect_equal(test::read(result), wanted, "pick along a dimension");
    EXPECT_EQ(pick_all(chosen, made.view, test::two_threads()),
              truth_of(chosen, made.view_truth().values));
  }
};

TEST(ArrayFold, PicksTheSmallestIndexOfTheBestElements) { test::for_random_cases(400, Picks()); }

TEST(ArrayFold, MeansAndNormsAreThoseOfTheirFormulas) {
  const CooTensor<double> x({2, 3}, {0, 0, 0, 2, 1, 1}, {3, 4, 1e200});
  EXPECT_EQ(fold(Fold::Mean, x, {1}, test::one_thread()).get({0}), 7.0 / 3);
  EXPECT_EQ(fold(Fold::Norm2, x, {1}, test::one_thread()).values(),
            (std::vector<double>{5, 1e200}));
  EXPECT_EQ(fold_all(Fold::Norm2, x, test::one_thread()), 1e200);
  EXPECT_EQ(
      fold_all(Fold::Norm2, CooTensor<double>({3}, {0, 1}, {3e-200, 4e-200}), test::one_thread()),
      5e-200);
}

TEST(ArrayFold, NaNPropagatesAndIsPickedOnlyIfThereIsNothingElse) {
  const double nan = std::nan("");
  const CooTensor<double> x({3}, {0, 1}, {nan, -1});
  EXPECT_TRUE(std::isnan(fold_all(Fold::Max, x, test::one_thread())));
  EXPECT_EQ(pick_all(Pick::Max, x, test::one_thread()), 2);
  EXPECT_EQ(pick_all(Pick::AbsMax, x, test::one_thread()), 1);
  EXPECT_EQ(pick_all(Pick::Max, CooTensor<double>({1}, {0}, {nan}), test::one_thread()), 0);
  EXPECT_EQ(pick_all(Pick::Max, CooTensor<double>({0}), test::one_thread()), std::nullopt);
}

TEST(ArrayFold, IntegerSumsAreExactOrRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const CooTensor<std::int64_t> x({3}, {0, 1, 2}, {kMost, 5, -5});
  EXPECT_EQ(fold_all(Fold::Sum, x, test::one_thread()), kMost);
  EXPECT_THROW(fold_all(Fold::Norm1, x, test::one_thread()), Error);
  EXPECT_THROW(fold_all(Fold::Mean, x, test::one_thread()), Error);
  const CooTensor<std::int32_t> small({2}, {0, 1}, {2'000'000'000, 2'000'000'000});
  EXPECT_EQ(fold_all(Fold::Sum, small, test::one_thread()), 4'000'000'000);
}

TEST(ArrayFold, AnUnspecifiedValueTakesPart) {
  const auto array = to_mapped(CooTensor<double>({4}, {1}, {3}), Mapping({4}), MappedKind::FlatCoo)
                         .with_unspecified(2);
  EXPECT_EQ(fold_all(Fold::Sum, array, test::one_thread()), 9);
  EXPECT_EQ(fold_all(Fold::Min, array, test::one_thread()), 2);
  EXPECT_EQ(pick_all(Pick::Min, array, test::one_thread()), 0);
}

TEST(ArrayFold, BitsDoNotDependOnTheNumberOfThreads) {
  Random random(6);
  std::vector<std::int32_t> at;
  std::vector<float> values;
  for (std::int32_t i = 0; i < 200'000; ++i) {
    at.insert(at.end(), {i / 1000, i % 1000, std::int32_t(random.below(100))});
    values.push_back(float(random.unit()) - 0.5f);
  }
  const CooTensor<float> x({200, 1000, 100}, at, values);
  for (const Shape& dims : {Shape{0}, {1}, {2}, {0, 1}, {0, 1, 2}})
    for (const Fold chosen : {Fold::Sum, Fold::Norm2})
      EXPECT_EQ(fold(chosen, x, dims, test::one_thread()),
                fold(chosen, x, dims, test::two_threads()));
}

TEST(ArrayFold, RefusesWhatHasNoResult) {
  const CooTensor<float> x({2, 0});
  EXPECT_THROW(fold(Fold::Max, x, {1}, test::one_thread()), Error);
  EXPECT_EQ(fold_all(Fold::Sum, x, test::one_thread()), 0);
  EXPECT_THROW(fold(Fold::Sum, x, {2}, test::one_thread()), Error);
  EXPECT_THROW(fold(Fold::Sum, x, {0, -2}, test::one_thread()), Error);
  EXPECT_THROW(pick(Pick::Max, x, 1, test::one_thread()), Error);
}

}  // namespace
}  // namespace tessera::arrays
