#include "tessera/arrays/ops/transform.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Kind;
using test::Viewed;

constexpr Unary kExact[] = {Unary::Relu,     Unary::Abs,   Unary::Sign,     Unary::Square,
                            Unary::Negative, Unary::Trunc, Unary::ZerosLike};

double truth_of(Unary function, double v) {
  switch (function) {
    case Unary::Relu:
      return std::fmax(v, 0);
    case Unary::Abs:
      return std::abs(v);
    case Unary::Sign:
      return double((v > 0) - (v < 0));
    case Unary::Square:
      return v * v;
    case Unary::Negative:
      return 0 - v;
    case Unary::ZerosLike:
      return 0;
    default:
      return v;
  }
}

double truth_of(Binary op, double a, double b) {
  switch (op) {
    case Binary::Add:
      return a + b;
    case Binary::Subtract:
      return a - b;
    case Binary::Multiply:
      return a * b;
    case Binary::Minimum:
      return std::fmin(a, b);
    default:
      return std::fmax(a, b);
  }
}

constexpr Binary kOps[] = {Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Minimum,
                           Binary::Maximum};

template <class F>
Dense mapped(Dense from, F f) {
  for (double& v : from.values) v = f(v) + 0.0;  // no -0
  return from;
}

struct MapsEveryElement {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const Unary function = kExact[random.below(7)];
    const X result = map(Operation<typename X::Value>(function), made.view, test::two_threads());
    expect_equal(test::read(result),
                 mapped(made.view_truth(), [&](double v) { return truth_of(function, v); }),
                 to_string(function));
    expect_equal(test::read(made.whole), made.truth, "the operand stays");
  }
};

TEST(ArrayTransform, MapsEveryElementInEveryStorage) {
  test::for_random_cases(400, MapsEveryElement());
}

struct ChangesTheOriginal {
  template <class X>
  void operator()(Random& random) const {
    using T = typename X::Value;
    auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const auto scalar = double(random.below(4));
    const std::int64_t kind = random.below(4);
    const T value = cast_value<T>(scalar);
    const Reach reach = random.below(2) == 0 ? Reach::All : Reach::Stored;
    const Operation<T> operation = kind == 0   ? Operation<T>(Binary::Multiply, value)
                                   : kind == 1 ? Operation<T>(Binary::Add, value)
                                   : kind == 2 ? Operation<T>::assign(value)
                                               : Operation<T>(Unary::Negative);
    change(operation, made.view, test::two_threads(), reach);
    for (const std::int64_t at : made.places) {
      double& v = made.truth.values[std::size_t(at)];
      const bool stays = reach == Reach::Stored && v == 0;
      const double changed = kind == 0   ? v * scalar
                             : kind == 1 ? v + scalar
                             : kind == 2 ? scalar
                                         : 0 - v;
      if (!stays) v = changed;
    }
    // A strided storage has every place, zeros too.
    if (is_full(made.whole) && reach == Reach::Stored) return;
    expect_equal(test::read(made.whole), made.truth, operation.name());
    expect_equal(test::read(made.view), made.view_truth(), operation.name());
  }
  template <class T>
  static bool is_full(const MappedArray<T>& x) {
    return x.is_full();
  }
  template <class X>
  static bool is_full(const X&) {
    return false;
  }
};

TEST(ArrayTransform, ChangesInPlaceAreSeenByTheOriginal) {
  test::for_random_cases(600, ChangesTheOriginal());
}

struct CombinesTwo {
  template <class X>
  void operator()(Random& random) const {
    const auto a = test::make(random, 1 + random.below(5), Kind<X>());
    const Binary op = kOps[random.below(5)];
    // The other operand has the same shape, or lengths of 1 that are repeated.
    test::Shape shape = a.shape;
    for (std::int64_t& length : shape)
      if (random.below(3) == 0) length = 1;
    const Dense other = test::random_dense(random, shape);
    const X b = like<X>(other);
    Dense wanted = a.view_truth();
    for (std::int64_t i = 0; i < std::ssize(wanted.values); ++i) {
      test::Shape at = test::index_at(a.shape, i);
      for (std::size_t d = 0; d < at.size(); ++d) at[d] = shape[d] == 1 ? 0 : at[d];
      double& v = wanted.values[std::size_t(i)];
      v = truth_of(op, v, other.values[std::size_t(test::position_at(shape, at))]) + 0.0;
    }
    expect_equal(test::read(combine(op, a.view, b, test::two_threads())), wanted, to_string(op));
    const auto dense = test::to_array_of<typename X::Value>(other);
    expect_equal(test::read(combine(op, a.view, dense, test::two_threads())), wanted,
                 to_string(op) + " with a dense array");
    if (op == Binary::Multiply) {
      expect_equal(test::read(combine_stored(op, a.view, dense, test::two_threads())), wanted,
                   "multiply stored places with a dense array");
    }
  }
  template <class X>
  static X like(const Dense& dense) {
    using T = typename X::Value;
    const CooTensor<T> tensor = test::to_coo<T>(dense);
    if constexpr (std::same_as<X, CooTensor<T>>) {
      return tensor;
    } else if constexpr (std::same_as<X, MappedArray<T>>) {
      return to_mapped(tensor, Mapping(dense.shape), MappedKind::FlatCoo);
    } else {
      X matrix(dense.shape[0], dense.shape[1]);
      for (std::int64_t i = 0; i < std::ssize(dense.values); ++i)
        matrix.put(i / dense.shape[1], i % dense.shape[1],
                   cast_value<T>(dense.values[std::size_t(i)]));
      return matrix;
    }
  }
};

TEST(ArrayTransform, CombinesEveryElementOfTwoArrays) {
  test::for_random_cases(500, CombinesTwo());
}

struct CastsBack {
  template <class X>
  void operator()(Random& random) const {
    const auto made = test::make(random, 1 + random.below(5), Kind<X>());
    const auto wide = cast<double>(made.view, test::two_threads());
    expect_equal(test::read(wide), made.view_truth(), "cast to double");
    const auto whole = cast<std::int32_t>(wide, test::two_threads());
    expect_equal(test::read(whole), made.view_truth(), "cast to int32");
    const auto mixed =
        combine(Binary::Add, made.view, cast<Half>(wide, test::two_threads()), test::two_threads());
    expect_equal(test::read(mixed), mapped(made.view_truth(), [](double v) { return v + v; }),
                 "sum of two types");
  }
};

TEST(ArrayTransform, CastsBetweenAllTypes) { test::for_random_cases(300, CastsBack()); }

TEST(ArrayTransform, RealFunctionsAreThoseOfTheStandardLibrary) {
  const CooTensor<double> x({4}, {0, 2}, {0.25, 0.5});
  const auto root = map<CooTensor<double>>(Unary::Sqrt, x, test::one_thread());
  EXPECT_EQ(root.values(), (std::vector<double>{0.5, std::sqrt(0.5)}));
  const auto sine = map<CooTensor<double>>(Unary::Sin, x, test::one_thread());
  EXPECT_EQ(sine.values(), (std::vector<double>{std::sin(0.25), std::sin(0.5)}));
}

TEST(ArrayTransform, AValueForPlacesThatAreNotStoredNeedsAMappedArray) {
  const CooTensor<double> x({4}, {0, 2}, {0.25, 0.5});
  EXPECT_THROW(map<CooTensor<double>>(Unary::Exp, x, test::one_thread()), Error);
  const auto array = to_mapped(x, Mapping({4}), MappedKind::FlatCoo);
  const auto result = map<MappedArray<double>>(Unary::Exp, array, test::one_thread());
  EXPECT_EQ(result.unspecified(), 1.0);
  EXPECT_EQ(result.get({2}), std::exp(0.5));
}

TEST(ArrayTransform, IntegersAreExactOrRefusedAndThenUnchanged) {
  CooTensor<std::int32_t> x({3}, {0, 1}, {1 << 30, 7});
  const Operation<std::int32_t> twice(Binary::Multiply, 2);
  EXPECT_THROW(change(twice, x, test::one_thread()), Error);
  EXPECT_EQ(x.values(), (std::vector<std::int32_t>{1 << 30, 7}));
  EXPECT_THROW(combine(Binary::Add, x, x, test::one_thread()), Error);
  EXPECT_THROW(Operation<std::int32_t>{Unary::Sqrt}, Error);
  EXPECT_THROW(Operation<std::int64_t>(Binary::Divide, 2), Error);
  const auto wide = cast<std::int64_t>(x, test::one_thread());
  EXPECT_EQ(combine(Binary::Add, wide, wide, test::one_thread()).values(),
            (std::vector<std::int64_t>{std::int64_t{1} << 31, 14}));
}

TEST(ArrayElement, ConversionsRoundOnce) {
  // 1 + 2^-11 + 2^-40 is just above the middle of two halves; by way of float it would be the
  // middle, and round to even.
  EXPECT_EQ(float(cast_value<Half>(1 + 0x1p-11 + 0x1p-40)), 1 + 0x1p-10f);
  EXPECT_EQ(float(cast_value<Half>(1 + 0x1p-11)), 1.0f);
  EXPECT_EQ(float(cast_value<BFloat16>(std::int64_t{(1 << 24) + (1 << 16) + 1})),
            float((1 << 24) + (1 << 17)));
  EXPECT_EQ(cast_value<std::int32_t>(2.5), 2);
  EXPECT_EQ(cast_value<std::int32_t>(-3.5f), -4);
  EXPECT_THROW(cast_value<std::int32_t>(3e9), Error);
  EXPECT_THROW(cast_value<std::int64_t>(std::nan("")), Error);
  EXPECT_EQ(float(cast_value<Half>(1e300)), HUGE_VALF);
  EXPECT_TRUE((std::same_as<Common<Half, BFloat16>, float>));
  EXPECT_TRUE((std::same_as<Common<std::int32_t, float>, double>));
  EXPECT_TRUE((std::same_as<Common<std::int32_t, std::int64_t>, std::int64_t>));
}

TEST(ArrayTransform, BitsDoNotDependOnTheNumberOfThreads) {
  Random random(5);
  std::vector<std::int32_t> a_at, b_at;
  std::vector<float> a_values, b_values;
  for (std::int32_t i = 0; i < 300'000; ++i) {
    const bool to_a = random.below(2) == 0;
    (to_a ? a_at : b_at).push_back(i);
    (to_a ? a_values : b_values).push_back(float(random.unit()));
  }
  const CooTensor<float> a({300'000}, a_at, a_values), b({300'000}, b_at, b_values);
  EXPECT_EQ(combine(Binary::Add, a, b, test::one_thread()),
            combine(Binary::Add, a, b, test::two_threads()));
  EXPECT_EQ(map<CooTensor<float>>(Unary::Sin, a, test::one_thread()),
            map<CooTensor<float>>(Unary::Sin, a, test::two_threads()));
}

}  // namespace
}  // namespace tessera::arrays
