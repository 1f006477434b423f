#include "tessera/verify/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::verify {
namespace {

struct Product {
  sparse::Csr<float> weights = sparse::random_pattern(12, 20, {1, 1}, 0.4, 3);
  Matrix<float> in{20, 5}, out{12, 5};

  Product() {
    Random random(5);
    for (float& v : weights.values) v = float(random.unit() - 0.5);
    for (float& v : in.elements()) v = float(random.unit() - 0.5);
    for (std::int64_t r = 0; r < 12; ++r)
      for (std::int64_t b = weights.row_begin[std::size_t(r)];
           b < weights.row_begin[std::size_t(r) + 1]; ++b)
        for (std::int64_t z = 0; z < 5; ++z)
          out(r, z) += weights.values[std::size_t(b)] * in(weights.col[std::size_t(b)], z);
  }
  Verdict verify() const { return verify_product<float>(weights, in.view(), out.view(), {}); }
};

TEST(Verify, AcceptsAPlainFloatLoop) {
  const Verdict verdict = Product().verify();
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  EXPECT_EQ(verdict.compared, 60);
  EXPECT_GT(verdict.worst, 0.0);
}

TEST(Verify, FindsOnePartInAHundredThousandAndSaysWhere) {
  Product product;
  product.out(7, 3) += std::abs(product.out(7, 3)) * 1e-5f + 1e-5f;
  const Verdict verdict = product.verify();
  EXPECT_EQ(verdict.wrong, 1);
  EXPECT_EQ(verdict.worst_row, 7);
  EXPECT_EQ(verdict.worst_col, 3);
  EXPECT_NE(to_string(verdict).find("WRONG: 1 of 60 results, the worst at row 7, column 3"),
            std::string::npos)
      << to_string(verdict);
}

// One result: the sum of values[i] * in[i].
template <class T>
Verdict verdict_on(float got, const std::vector<float>& values, float in, const Rounding& of) {
  sparse::Csr<float> weights;
  weights.rows = 1;
  weights.cols = std::ssize(values);
  weights.row_begin = {0, weights.cols};
  weights.values = values;
  for (std::int64_t i = 0; i < weights.cols; ++i) weights.col.push_back(std::int32_t(i));
  Matrix<T> operand(weights.cols, 1), out(1, 1);
  for (T& v : operand.elements()) v = T(in);
  out(0, 0) = T(got);
  return verify_product<T>(weights, std::as_const(operand).view(), std::as_const(out).view(), of);
}

TEST(Verify, InfinityIsRightWhereTheTypeEndsAndNowhereElse) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Rounding half{DataType::Half, DataType::Float, 1};
  const auto ok = [&](float got, const std::vector<float>& values) {
    return verdict_on<Half>(got, values, 60000, half).ok();
  };
  EXPECT_TRUE(ok(kInf, {0.7f, 0.7f}));
  EXPECT_FALSE(ok(-kInf, {0.7f, 0.7f})) << "the sign is known";
  EXPECT_FALSE(ok(kInf, {0.7f, -0.7f, 0.5f})) << "float holds the partial sums";
  EXPECT_FALSE(ok(std::nanf(""), {0.7f, 0.7f})) << "no sum of floats is undefined";
  EXPECT_FALSE(ok(65504, {0.7f, 0.7f}));
  EXPECT_TRUE(verdict_on<Half>(kInf, {3, -3, 1}, 60000, {DataType::Half, DataType::Half, 1}).ok())
      << "partial sums of halves may end beyond their range";
  EXPECT_TRUE(verdict_on<float>(std::nanf(""), {3e38f, -3e38f}, 2.5f, {}).ok());
}

TEST(Verify, NotANumberIsWrong) {
  Product product;
  product.out(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(product.verify().wrong, 1);
}

TEST(Verify, NotANumberIsRightWhereAnOperandIsNone) {
  const float undefined = std::nanf("");
  EXPECT_TRUE(verdict_on<float>(undefined, {undefined, 1}, 2, {}).ok());
  EXPECT_TRUE(verdict_on<Half>(undefined, {0.5f}, undefined, {DataType::Half}).ok());
  EXPECT_FALSE(verdict_on<float>(2, {undefined, 1}, 2, {}).ok()) << "it was left out";
}

// The options of a pass that run_and_repair() reads.
struct RunOptions {
  Checksums* self_check = nullptr;
  bool repair = false;
};

TEST(Repair, RunsAPassOnceMoreAndKeepsTheReason) {
  Checksums checksums;
  int runs = 0, failures = 1;
  const auto pass = [&](const RunOptions& once) {
    EXPECT_FALSE(once.repair);
    if (runs++ < failures) throw Error(ErrorCode::CheckFailed, "a result is wrong");
    return true;
  };
  const RunOptions options{.self_check = &checksums, .repair = true};
  EXPECT_TRUE(run_and_repair(options, pass));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(checksums.first_failure, "a result is wrong");
  EXPECT_NE(to_string(checksums).find("repaired"), std::string::npos);
  runs = 0;
  failures = 2;
  EXPECT_THROW(static_cast<void>(run_and_repair(options, pass)), Error);
  EXPECT_EQ(runs, 2) << "no third run";
}

TEST(Repair, DoesNotRunAgainUnlessAskedTo) {
  Checksums checksums;
  int runs = 0;
  const auto pass = [&](const RunOptions&) -> bool {
    ++runs;
    throw Error(ErrorCode::CheckFailed, "a result is wrong");
  };
  EXPECT_THROW(static_cast<void>(run_and_repair(RunOptions{.self_check = &checksums}, pass)),
               Error);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(checksums.first_failure, "");
}

TEST(Repair, LeavesOtherErrorsAlone) {
  int runs = 0;
  EXPECT_THROW(static_cast<void>(run_and_repair(RunOptions{.repair = true},
                                                [&](const RunOptions&) -> bool {
                                                  ++runs;
                                                  throw Error(ErrorCode::Internal, "other");
                                                })),
               Error);
  EXPECT_EQ(runs, 1);
}

// Changes of one result by twice its bound, in a row of 64: stage one has to doubt its column, and
// right results have to pass.
TEST(Checksums, SeeOneResultBeyondItsBoundAmongManyColumns) {
  const auto weights = [] {
    auto made = sparse::random_pattern(12, 40, {1, 1}, 0.5, 3);
    Random random(5);
    for (float& v : made.values) v = float(random.unit() - 0.5);
    return made;
  }();
  const auto in = random_matrix<float>(40, 64, 6);
  Matrix<float> out(12, 64);
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t b = weights.row_begin[std::size_t(r)];
         b < weights.row_begin[std::size_t(r) + 1]; ++b)
      for (std::int64_t z = 0; z < 64; ++z)
        out(r, z) += weights.values[std::size_t(b)] * in(weights.col[std::size_t(b)], z);
  const auto check = [&] {
    return check_product<float>(weights, in.view(), std::as_const(out).view(), {});
  };
  EXPECT_TRUE(check().ok());
  EXPECT_EQ(check().compared, 64);
  const double bound = 23 * 0x1p-24 * 20 * 0.25 * 0.5;  // 20 products of 1/4 * 1/2
  out(7, 50) += float(4 * bound);
  EXPECT_EQ(check().first_wrong_row, 7);
  EXPECT_EQ(check().first_wrong_col, 50);
  EXPECT_EQ(check().recomputed, 12) << "the results of one column";
}

TEST(Checksums, OfChangedMemoryRecomputeEveryResultAndAcceptRightOnes) {
  const Product product;
  const Checksums checksums = check_product<float>(product.weights, product.in.view(),
                                                   product.out.view(), {}, {2, "tile 3"});
  EXPECT_TRUE(checksums.ok());
  EXPECT_EQ(checksums.recomputed, 60);
  EXPECT_NE(to_string(checksums).find("memory changed in 2 places, first tile 3"),
            std::string::npos);
}

TEST(Verify, AMissingRowIsWrong) {
  Product product;
  std::int64_t present = 0;
  for (std::int64_t z = 0; z < 5; ++z) {
    present += product.out(4, z) != 0;
    product.out(4, z) = 0;
  }
  ASSERT_GT(present, 0);
  EXPECT_EQ(product.verify().wrong, present);
}

// One row of weights times one column of inputs, and the bound written out for it by hand.
struct OneResult {
  std::vector<float> weights, inputs;
  Rounding rounding;
  double exact = 0, bound = 0;

  Verdict verify(double error) const {
    const auto terms = static_cast<std::int64_t>(weights.size());
    Matrix<float> row(1, terms), in(terms, 1), out(1, 1);
    row.elements().assign(weights.begin(), weights.end());
    in.elements().assign(inputs.begin(), inputs.end());
    out(0, 0) = float(exact + error);
    return verify_product<float>(sparse::from_dense(std::as_const(row).view(), {1, 1}), in.view(),
                                 out.view(), rounding);
  }
};

void expect_bites_at_its_bound(const OneResult& result) {
  for (const double sign : {-1.0, 1.0}) {
    const Verdict inside = result.verify(sign * 0.99 * result.bound);
    EXPECT_TRUE(inside.ok()) << to_string(inside);
    EXPECT_NEAR(inside.worst, 0.99, 0.005);
    const Verdict outside = result.verify(sign * 1.01 * result.bound);
    EXPECT_EQ(outside.wrong, 1) << to_string(outside);
    EXPECT_NEAR(outside.worst, 1.01, 0.005);
  }
}

TEST(VerifyBound, BitesWhereTheSumsRound) {
  // 1/4 - 1/4 = 0: two terms and three partials of magnitude 1/2 in all.
  expect_bites_at_its_bound({.weights = {0.5, -0.5},
                             .inputs = {0.5, 0.5},
                             .rounding = {DataType::Float, DataType::Float, 3},
                             .exact = 0,
                             .bound = (2 + 3 + 2) * 0x1p-24 / 2});
}

TEST(VerifyBound, BitesWhereTheResultRoundsToHalf) {
  expect_bites_at_its_bound({.weights = {0.5},
                             .inputs = {0.5},
                             .rounding = {DataType::Half, DataType::Float, 1},
                             .exact = 0.25,
                             .bound = 0x1p-11 / 4 + 0x1p-24 + (1 + 1 + 2) * 0x1p-24 / 4});
}

TEST(VerifyBound, BitesWhereTheResultRoundsToBFloat16) {
  expect_bites_at_its_bound({.weights = {0.5},
                             .inputs = {0.5},
                             .rounding = {DataType::BFloat16, DataType::Float, 1},
                             .exact = 0.25,
                             .bound = 0x1p-8 / 4 + (1 + 1 + 2) * 0x1p-24 / 4});
}

// 1000 sums in half of magnitude 1000 / 4: the bound is half of that, and may not be less.
TEST(VerifyBound, BitesWhereTheSumsRoundToHalf) {
  expect_bites_at_its_bound({.weights = std::vector<float>(1000, 0.5f),
                             .inputs = std::vector<float>(1000, 0.5f),
                             .rounding = {DataType::Half, DataType::Half, 1},
                             .exact = 250,
                             .bound = (1000 + 1 + 2) * 0x1p-11 * 250 * (1 + 0x1p-11) +
                                      (1000 + 2) * 0x1p-24 + 0x1p-11 * 250});
}

// Whole products whose magnitudes sum to no more than `most`: equality; one more: a bound.
void expect_equality_up_to(std::int64_t most, const Rounding& rounding, float largest) {
  for (const std::int64_t more : {0, 1}) {
    OneResult result{.weights = {largest, -largest, 2.0f + float(more)}, .inputs = {1, 1, 1}};
    result.rounding = rounding;
    ASSERT_EQ(std::int64_t(2 * largest) + 2, most);
    result.exact = 2 + double(more);
    EXPECT_EQ(result.verify(0).exact, 1 - more);
    EXPECT_TRUE(result.verify(0).ok());
    EXPECT_EQ(result.verify(0x1p-20).ok(), more == 1) << "a small error";
  }
}

TEST(VerifyBound, AsksForEqualityWhereNothingIsRounded) {
  expect_equality_up_to(1 << 24, {DataType::Float, DataType::Float, 3}, (1 << 23) - 1);
  expect_equality_up_to(1 << 11, {DataType::Half, DataType::Half, 3}, (1 << 10) - 1);
}

// 300 is no bfloat16; its neighbours are 300 = 1.171875 * 2^8 rounded to 8 bits.
TEST(VerifyBound, AsksForTheExactSumRoundedToTheResultsType) {
  OneResult result{.weights = std::vector<float>(301, 1), .inputs = std::vector<float>(301, 1)};
  result.rounding = {DataType::BFloat16, DataType::Float, 1};
  result.exact = 302;  // 301 lies half way between 300 and 302, of which 300 is even
  EXPECT_FALSE(result.verify(0).ok());
  result.exact = 300;
  EXPECT_TRUE(result.verify(0).ok());
  EXPECT_EQ(to_string(result.verify(0)), "ok: 1 results, all exact");
}

TEST(VerifyBound, BitesWhereEveryProductUnderflows) {
  // 200 products of 2^-170, each lost; the smallest float is 2^-149.
  expect_bites_at_its_bound({.weights = std::vector<float>(200, 0x1p-85f),
                             .inputs = std::vector<float>(200, 0x1p-85f),
                             .rounding = {DataType::Float, DataType::Float, 4},
                             .exact = 200 * 0x1p-170,
                             .bound = (200 + 4 + 1) * 0x1p-149 + 0x1p-149});
}

TEST(VerifyBound, AcceptsAPlainLoopOverSubnormals) {
  Matrix<float> row(1, 200), in(200, 1), out(1, 1);
  Random random(8);
  for (std::int64_t y = 0; y < 200; ++y) {
    row(0, y) = float(1 + y % 11) * 0x1p-149f;
    in(y, 0) = float(2 * random.unit() - 1);
    out(0, 0) += row(0, y) * in(y, 0);
  }
  const Verdict verdict =
      verify_product<float>(sparse::from_dense(std::as_const(row).view(), {1, 1}),
                            std::as_const(in).view(), std::as_const(out).view(), {});
  EXPECT_TRUE(verdict.ok()) << to_string(verdict);
}

TEST(Verify, AGradientOfAnotherPatternIsWrongAltogether) {
  const Product product;
  sparse::Csr<float> gradient = sparse::random_pattern(12, 20, {1, 1}, 0.4, 4);
  const Verdict verdict =
      verify_gradient<float>(product.weights, gradient, product.out.view(), product.in.view(), {});
  EXPECT_EQ(verdict.wrong, static_cast<std::int64_t>(product.weights.values.size()));
}

TEST(Verify, AGradientIsTheProductOfTheTwoRows) {
  const Product product;
  sparse::Csr<float> gradient = product.weights;
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t b = gradient.row_begin[std::size_t(r)];
         b < gradient.row_begin[std::size_t(r) + 1]; ++b) {
      float sum = 0;
      for (std::int64_t z = 0; z < 5; ++z)
        sum += product.out(r, z) * product.in(gradient.col[std::size_t(b)], z);
      gradient.values[std::size_t(b)] = sum;
    }
  const auto verify = [&] {
    return verify_gradient<float>(product.weights, gradient, product.out.view(), product.in.view(),
                                  {});
  };
  EXPECT_TRUE(verify().ok()) << to_string(verify());
  std::swap(gradient.values.front(), gradient.values.back());
  EXPECT_EQ(verify().wrong, 2);
}

TEST(Checksums, OfThePartsOfABatchAreAddedUp) {
  Checksums all;
  add_part({.exact = true, .compared = 3, .recomputed = 1, .worst = 0.5}, all);
  EXPECT_EQ(all, (Checksums{.exact = true, .compared = 3, .recomputed = 1, .worst = 0.5}));
  add_part({.compared = 4, .damaged = 2, .first_failure = "f", .first_damage = "d", .worst = 0.25},
           all);
  add_part({.exact = true, .compared = 1, .damaged = 1, .first_failure = "g"}, all);
  EXPECT_EQ(all, (Checksums{.compared = 8,
                            .recomputed = 1,
                            .damaged = 3,
                            .first_failure = "f",
                            .first_damage = "d",
                            .worst = 0.5}));
}

}  // namespace
}  // namespace tessera::verify
