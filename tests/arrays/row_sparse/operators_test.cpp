// Every operator over every pair of storages: stored as the table says, and the elements of the
// same operator over dense arrays.

#include "tessera/arrays/row_sparse/operators.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::dense;
using test::draw;
using test::Rows;

constexpr Storage kDense = Storage::Dense, kRows = Storage::RowSparse, kCsr = Storage::Csr;
constexpr Storage kEvery[] = {kDense, kRows, kCsr};
constexpr Inferred kFallback{kDense, true};

using Pair = std::pair<Storage, Storage>;

// Returns the storage that the table lists for a pair, or the fallback.
Inferred expected(const std::map<Pair, Storage>& table, Pair pair) {
  const auto found = table.find(pair);
  return found == table.end() ? kFallback : Inferred{found->second, false};
}

TEST(InferStorage, OfDotIsTheTable) {
  const std::map<Pair, Storage> plain = {{{kDense, kDense}, kDense},
                                         {{kCsr, kDense}, kDense},
                                         {{kCsr, kRows}, kDense},
                                         {{kDense, kCsr}, kCsr}};
  const std::map<Pair, Storage> turned = {
      {{kDense, kDense}, kDense}, {{kCsr, kDense}, kRows}, {{kCsr, kRows}, kRows}};
  const std::map<Pair, Storage> second = {{{kDense, kDense}, kDense}, {{kDense, kCsr}, kDense}};
  for (const Storage a : kEvery)
    for (const Storage b : kEvery) {
      SCOPED_TRACE(to_string(a) + " " + to_string(b));
      EXPECT_EQ(infer_dot(a, b), expected(plain, {a, b}));
      EXPECT_EQ(infer_dot(a, b, {.transpose_a = true}), expected(turned, {a, b}));
      EXPECT_EQ(infer_dot(a, b, {.transpose_b = true}), expected(second, {a, b}));
      EXPECT_EQ(infer_dot(a, b, {.dense_result = true}).result, kDense);
    }
}

TEST(InferStorage, OfArithmeticIsTheTable) {
  const std::map<Pair, Storage> sums = {{{kDense, kDense}, kDense}, {{kRows, kRows}, kRows},
                                        {{kCsr, kCsr}, kCsr},       {{kRows, kDense}, kDense},
                                        {{kDense, kRows}, kDense},  {{kCsr, kDense}, kDense},
                                        {{kDense, kCsr}, kDense}};
  const std::map<Pair, Storage> products = {{{kDense, kDense}, kDense},
                                            {{kRows, kRows}, kRows},
                                            {{kCsr, kCsr}, kCsr},
                                            {{kRows, kDense}, kRows},
                                            {{kDense, kRows}, kRows}};
  const std::map<Pair, Storage> quotients = {{{kDense, kDense}, kDense}};
  for (const Storage a : kEvery) {
    for (const Storage b : kEvery) {
      SCOPED_TRACE(to_string(a) + " " + to_string(b));
      EXPECT_EQ(infer_binary(Binary::Add, a, b), expected(sums, {a, b}));
      EXPECT_EQ(infer_binary(Binary::Subtract, a, b), expected(sums, {a, b}));
      EXPECT_EQ(infer_binary(Binary::Multiply, a, b), expected(products, {a, b}));
      EXPECT_EQ(infer_binary(Binary::Divide, a, b), expected(quotients, {a, b}));
    }
    EXPECT_EQ(infer_scalar(Binary::Multiply, a), (Inferred{a, false}));
    EXPECT_EQ(infer_scalar(Binary::Divide, a), (Inferred{a, false}));
    EXPECT_EQ(infer_scalar(Binary::Add, a), (Inferred{kDense, a != kDense}));
    EXPECT_EQ(infer_sum(a, false), (Inferred{kDense, a == kRows}));
    EXPECT_EQ(infer_sum(a, true), (Inferred{kDense, a != kDense}));
  }
}

// An array in every storage that can hold it, with its dense form.
Array<float> stored(const DenseArray<float>& array, Storage storage) {
  return cast_storage(Array<float>(array), storage);
}

// Runs an operator and compares with the run over dense arrays, and with what was inferred.
void expect_as_inferred(const Array<float>& got, const Array<float>& truth, Inferred inferred,
                        const Fallbacks& log) {
  check(got);
  EXPECT_EQ(storage_of(got), inferred.result);
  EXPECT_EQ(log.seen().size(), inferred.falls_back ? 1u : 0u);
  EXPECT_EQ(cast_storage(got, kDense), truth);
}

TEST(Operators, ArithmeticAgreesWithDenseArraysInEveryStorage) {
  Random random(/*seed=*/5);
  const auto left = test::random_rows<float>({7, 4}, 0.5, random);
  const auto right = test::random_rows<float>({7, 4}, 0.5, random);
  for (const Binary op : {Binary::Add, Binary::Subtract, Binary::Multiply})
    for (const Storage a : kEvery)
      for (const Storage b : kEvery) {
        SCOPED_TRACE(to_string(op) + " " + to_string(a) + " " + to_string(b));
        Fallbacks log, none(Fallbacks::Mode::Strict);
        expect_as_inferred(combine(op, stored(left, a), stored(right, b), log),
                           combine<float>(op, left, right, none), infer_binary(op, a, b), log);
      }
}

TEST(Operators, DivisionIsDenseAndByAScalarIsNot) {
  Fallbacks log;
  const auto a = dense({2, 2}, {2, 0, 0, 0}), b = dense({2, 2}, {4, 1, 1, 1});
  EXPECT_EQ(combine(Binary::Divide, stored(a, kRows), stored(b, kRows), log),
            Array<float>(dense({2, 2}, {0.5f, 0, 0, 0})));
  EXPECT_EQ(combine(Binary::Divide, stored(a, kRows), 4.0f, log),
            Array<float>(test::row_sparse<float>({2, 2}, {0}, {0.5f, 0})));
  EXPECT_EQ(combine(Binary::Add, stored(a, kCsr), 1.0f, log),
            Array<float>(dense({2, 2}, {3, 1, 1, 1})));
  EXPECT_EQ(log.seen(), (std::vector<Fallback>{{"divide(row_sparse, row_sparse)", 1, Bytes(32)},
                                               {"add scalar(csr)", 1, Bytes(16)}}));
}

TEST(Operators, AFallbackIsOneLineForEachSignature) {
  Fallbacks log;
  const Array<float> rows = stored(dense({2, 1}, {2, 0}), kRows);
  for (int i = 0; i < 3; ++i) map(Unary::Exp, rows, log);
  map(Unary::Cos, rows, log);
  EXPECT_EQ(log.seen(), (std::vector<Fallback>{{"exp(row_sparse)", 3, Bytes(8)},
                                               {"cos(row_sparse)", 1, Bytes(8)}}));
}

void expect_dot_agrees(const DenseArray<float>& left, const DenseArray<float>& right,
                       DotForm form) {
  Fallbacks none(Fallbacks::Mode::Strict);
  const Array<float> truth = dot<float>(left, right, form, none);
  const auto threads = make_executor(ExecutorKind::Threads, 2);
  for (const Storage a : kEvery)
    for (const Storage b : kEvery) {
      SCOPED_TRACE(to_string(a) + " " + to_string(b));
      Fallbacks log, other;
      EXPECT_EQ(dot(stored(left, a), stored(right, b), form, other, *threads),
                dot(stored(left, a), stored(right, b), form, other));
      expect_as_inferred(dot(stored(left, a), stored(right, b), form, log), truth,
                         infer_dot(a, b, form), log);
    }
}

// The dense dot itself, by the definition. Quarters are exact, so any order of sums is.
TEST(Operators, DenseDotIsTheDefinition) {
  Random random(/*seed=*/7);
  Fallbacks none(Fallbacks::Mode::Strict);
  const auto a = test::random_rows<float>({3, 4}, 1, random);
  const auto b = test::random_rows<float>({4, 2}, 1, random);
  const auto product = std::get<DenseArray<float>>(dot<float>(a, b, {}, none));
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 2; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += a.values[r * 4 + k] * b.values[k * 2 + c];
      EXPECT_EQ(product.values[r * 2 + c], sum);
    }
}

TEST(Operators, DotAgreesWithDenseArraysInEveryStorageAndForm) {
  Random random(/*seed=*/6);
  for (const double density : {0.0, 0.4, 1.0})
    for (const bool turn_a : {false, true})
      for (const bool turn_b : {false, true})
        for (const bool dense_result : {false, true}) {
          const auto a =
              test::random_rows<float>(turn_a ? Rows{5, 3} : Rows{3, 5}, density, random);
          const auto b =
              test::random_rows<float>(turn_b ? Rows{2, 5} : Rows{5, 2}, density, random);
          expect_dot_agrees(a, b, {turn_a, turn_b, dense_result});
        }
}

TEST(Operators, FunctionsOfZeroDecideWhetherTheStorageStays) {
  const auto array = dense({3, 2}, {0, 0, 0.5f, 0, 0, 0});
  Fallbacks strict(Fallbacks::Mode::Strict);
  for (int i = 0; i < kUnaryCount; ++i) {
    const auto f = static_cast<Unary>(i);
    SCOPED_TRACE(to_string(f));
    const Array<float> truth = map<float>(f, array, strict);
    const float at_zero = std::get<DenseArray<float>>(truth).values[0];
    EXPECT_EQ(keeps_zero(f), at_zero == 0);
    for (const Storage storage : {kRows, kCsr}) {
      Fallbacks log;
      const Array<float> got = map(f, stored(array, storage), log);
      EXPECT_EQ(storage_of(got), keeps_zero(f) ? storage : kDense);
      EXPECT_EQ(log.seen().empty(), keeps_zero(f));
      EXPECT_EQ(cast_storage(got, kDense), truth);
    }
  }
}

TEST(Operators, FunctionsAreWhatTheirNamesSay) {
  Fallbacks strict(Fallbacks::Mode::Strict);
  const std::map<Unary, std::pair<double, double>> examples = {
      {Unary::Relu, {-2, 0}},
      {Unary::Abs, {-2, 2}},
      {Unary::Sign, {-0.3, -1}},
      {Unary::Round, {-2.5, -3}},
      {Unary::Rint, {-2.5, -2}},
      {Unary::Ceil, {1.2, 2}},
      {Unary::Floor, {-1.2, -2}},
      {Unary::Trunc, {-1.8, -1}},
      {Unary::Fix, {1.8, 1}},
      {Unary::Square, {-3, 9}},
      {Unary::Sqrt, {9, 3}},
      {Unary::Cbrt, {-8, -2}},
      {Unary::Sin, {1, std::sin(1.0)}},
      {Unary::Tan, {1, std::tan(1.0)}},
      {Unary::Arcsin, {1, M_PI / 2}},
      {Unary::Arctan, {1, M_PI / 4}},
      {Unary::Sinh, {1, std::sinh(1.0)}},
      {Unary::Tanh, {1, std::tanh(1.0)}},
      {Unary::Arcsinh, {1, std::asinh(1.0)}},
      {Unary::Arctanh, {0.5, std::atanh(0.5)}},
      {Unary::Log1p, {1, std::log(2.0)}},
      {Unary::Expm1, {1, std::exp(1.0) - 1}},
      {Unary::Degrees, {M_PI, 180}},
      {Unary::Radians, {180, M_PI}},
      {Unary::Negative, {2, -2}},
      {Unary::ZerosLike, {2, 0}},
      {Unary::Exp, {1, std::exp(1.0)}},
      {Unary::Log, {std::exp(1.0), 1}},
      {Unary::Cos, {M_PI, -1}},
      {Unary::Cosh, {1, std::cosh(1.0)}},
      {Unary::Gamma, {5, 24}},
      {Unary::Sigmoid, {0, 0.5}},
      {Unary::Rsqrt, {4, 0.5}},
      {Unary::Arccos, {0, M_PI / 2}}};
  EXPECT_EQ(std::ssize(examples), kUnaryCount);
  for (const auto& [f, example] : examples)
    EXPECT_NEAR(
        std::get<DenseArray<double>>(map<double>(f, dense<double>({1}, {example.first}), strict))
            .values[0],
        example.second, 1e-12)
        << to_string(f);
}

TEST(CsrRows, AreSlicedTakenJoinedAndClipped) {
  const sparse::Csr<float> m = draw({"1.2", "...", ".34"});
  EXPECT_EQ(slice_rows(m, 1, 3), draw({"...", ".34"}));
  EXPECT_EQ(slice_rows(m, 1, 1).rows, 0);
  EXPECT_EQ(take_rows<float>(m, Rows{2, 0, 2}), draw({".34", "1.2", ".34"}));
  EXPECT_EQ(concat_rows<float>(std::vector{slice_rows(m, 0, 1), slice_rows(m, 1, 3)}), m);
  EXPECT_EQ(clip(m, -1.0f, 3.0f), draw({"1.2", "...", ".33"}));
}

}  // namespace
}  // namespace tessera::arrays
