#include "tessera/host/prepared.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/host/list_case.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kX = 240, kY = 480;

template <class T>
struct PreparedCase {
  sparse::Csr<float> pattern;
  std::vector<T> values;
  std::unique_ptr<Executor> executor = make_executor(2);

  explicit PreparedCase(BlockShape block, double density = 0.1)
      : pattern(sparse::random_pattern(kX, kY, block, density, 3)) {
    Random random(7);
    for (float& value : pattern.values) {
      values.push_back(T(float(2 * random.unit() - 1)));
      value = float(values.back());
    }
  }
  CompressedRows<T, std::int32_t, std::int64_t> a() const {
    return {kX, kY, pattern.block, pattern.row_begin, pattern.col, values};
  }
};

// Compares with double precision: C = alpha * A * B + beta * C, and the transpose likewise.
template <class T>
void expect_right(const sparse::Csr<float>& a, bool transposed, const Matrix<T>& b,
                  const Matrix<T>& before, const Matrix<T>& got, const SpmmOptions<T>& options) {
  Matrix<double> sums(got.rows(), got.cols()), sizes(got.rows(), got.cols());
  for (std::int64_t r = 0; r < a.block_rows(); ++r)
    for (auto i = a.row_begin[std::size_t(r)]; i < a.row_begin[std::size_t(r) + 1]; ++i)
      for (std::int64_t e = 0; e < a.block.area(); ++e) {
        std::int64_t x = r * a.block.rows + e / a.block.cols;
        std::int64_t y = a.col[std::size_t(i)] * a.block.cols + e % a.block.cols;
        if (transposed) std::swap(x, y);
        for (std::int64_t z = 0; z < got.cols(); ++z) {
          const double term =
              double(a.values[std::size_t(i * a.block.area() + e)]) * double(float(b(y, z)));
          sums(x, z) += term;
          sizes(x, z) += std::abs(term);
        }
      }
  for (std::int64_t x = 0; x < got.rows(); ++x)
    for (std::int64_t z = 0; z < got.cols(); ++z) {
      const double old = options.beta * double(float(before(x, z)));
      double sum = options.alpha * sums(x, z) + old;
      if (options.activation == Activation::Relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(float(got(x, z)), sum,
                  (std::abs(options.alpha) * sizes(x, z) + std::abs(old)) *
                          (3 * test::kRounding<T> + 300 * 0x1p-24) +
                      1e-7)
          << x << ", " << z;
    }
}

template <class T>
class PreparedMatrix : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(PreparedMatrix, AllTypes);

TYPED_TEST(PreparedMatrix, ServesAnyBatchInBothDirections) {
  using T = TypeParam;
  tessera::test::Cases cases;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}}) {
    const PreparedCase<T> c(block);
    const Prepared<T> prepared(c.a(), *c.executor, {.transpose = true});
    for (const std::int64_t z : {1, 7, 64, 300})
      for (const SpmmOptions<T>& options : {SpmmOptions<T>{},
                                            {.alpha = -2, .beta = 0.5f},
                                            {.beta = 1, .activation = Activation::Relu}})
        for (const bool transposed : {false, true}) {
          if (!cases.next()) continue;
          SCOPED_TRACE(testing::Message() << "block " << block.rows << ", " << z << " columns");
          const Matrix<T> b = random_matrix<T>(transposed ? kX : kY, z, 5);
          const Matrix<T> before = random_matrix<T>(transposed ? kY : kX, z, 6);
          const auto multiply = [&](MatrixView<const T> in, MatrixView<T> out, int threads) {
            const auto executor = make_executor(threads);
            if (transposed)
              prepared.spmm_transposed(in, out, *executor, options);
            else
              prepared.spmm(in, out, *executor, options);
          };
          Matrix<T> got = before;
          multiply(b.view(), got.view(), 2);
          expect_right(c.pattern, transposed, b, before, got, options);
          Matrix<T> again = before;
          multiply(b.view(), again.view(), 5);
          EXPECT_EQ(again, got);
          Matrix<T> turned = test::turned(before);
          multiply(test::turned(b).view().transposed(), turned.view().transposed(), 1);
          EXPECT_EQ(test::turned(turned), got);
        }
  }
}

// One of the threads multiplies one column, for which elements are read from the matrix itself.
class PreparedBlocks : public testing::TestWithParam<BlockShape> {};
TEST_P(PreparedBlocks, ServeSeveralThreadsAtOnceWhileValuesChange) {
  const PreparedCase<float> c(GetParam());
  Prepared<float> prepared(c.a(), *c.executor);
  std::vector<float> doubled = c.values;
  for (float& value : doubled) value *= 2;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto executor = make_executor(ExecutorKind::Threads, 1 + t % 2);
      const Matrix<float> b = random_matrix<float>(kY, 1 + 30 * t, t);
      Matrix<float> once(kX, b.cols()), got(kX, b.cols());
      spmm<float>(c.a(), b.view(), once.view(), *executor);
      Matrix<float> twice = once;
      for (float& value : twice.elements()) value *= 2;
      for (int i = 0; i < 50; ++i) {
        prepared.spmm(b.view(), got.view(), *executor);
        double from_once = 0, from_twice = 0;
        for (std::size_t e = 0; e < got.elements().size(); ++e) {
          from_once += std::abs(got.elements()[e] - once.elements()[e]);
          from_twice += std::abs(got.elements()[e] - twice.elements()[e]);
        }
        EXPECT_LT(std::min(from_once, from_twice), 1e-2) << "neither the old nor the new values";
      }
    });
  for (int i = 0; i < 40; ++i) prepared.set_values(i % 2 == 0 ? doubled : c.values);
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Shapes, PreparedBlocks,
                         testing::Values(BlockShape{1, 1}, BlockShape{4, 4}));

TEST(Prepared, ChangesItsPattern) {
  const PreparedCase<float> c({4, 4});
  Prepared<float> prepared(c.a(), *c.executor, {.transpose = true});
  const sparse::PatternChange change{.removed = {{0, c.pattern.col[0]}},
                                     .added = {{59, c.pattern.col.back() == 119 ? 118 : 119}}};
  sparse::Csr<float> changed = sparse::with_change(c.pattern, change);
  prepared.update(change);
  for (std::size_t i = 0; i < changed.values.size(); ++i) changed.values[i] = float(i % 9) - 4;
  prepared.set_values(changed.values);
  EXPECT_EQ(prepared.matrix(), changed);
  const Matrix<float> b = random_matrix<float>(kY, 33, 5);
  Matrix<float> got(kX, 33);
  prepared.spmm(b.view(), got.view(), *c.executor);
  expect_right(changed, false, b, got, got, {});
}

template <class Call>
void expect_refusal(ErrorCode code, const std::string& part, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "was taken, not refused with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Prepared, RefusesWhatDoesNotBelongToIt) {
  PreparedCase<float> c({4, 4});
  Prepared<float> prepared(c.a(), *c.executor);
  Matrix<float> b(kY, 3), q(kX, 3);
  const auto argument = ErrorCode::InvalidArgument;
  expect_refusal(argument, "the transpose was not prepared",
                 [&] { prepared.spmm_transposed(q.view(), b.view(), *c.executor); });
  expect_refusal(argument, "B 240 x 3", [&] { prepared.spmm(q.view(), q.view(), *c.executor); });
  expect_refusal(argument, "set_values",
                 [&] { prepared.set_values(std::span(c.values).first(5)); });
  expect_refusal(argument, "must be in 1",
                 [&] { Prepared<float>(c.a(), *c.executor, {.batch = 0}); });
  c.pattern.col[1] = c.pattern.col[0];
  expect_refusal(ErrorCode::BadInput, "", [&] { Prepared<float>(c.a(), *c.executor); });
  c.pattern.col[1] = 120;
  expect_refusal(ErrorCode::BadInput, "place 1 is in block column 120",
                 [&] { Prepared<float>(c.a(), *c.executor); });
}

}  // namespace
}  // namespace tessera::host
