#include "tessera/arrays/row_sparse/embedding.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tessera/arrays/ops/element.hpp"
#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"

namespace tessera::arrays {
namespace {

TEST(Embedding, PicksRowsAndAddsTheGradientsOfEqualIds) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  const auto table = test::dense<float>({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41});
  const std::vector<std::int64_t> ids = {4, 1, 4};
  EXPECT_EQ(embedding<float>(ids, table, *executor),
            test::dense<float>({3, 2}, {40, 41, 10, 11, 40, 41}));
  const auto gradient = test::dense<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(embedding_gradient<float>(ids, gradient, 5, *executor),
            test::row_sparse<float>({5, 2}, {1, 4}, {3, 4, 6, 8}));
  EXPECT_EQ(embedding_gradient<float>({}, test::dense<float>({0, 2}, {}), 5, *executor),
            row_sparse_zeros<float>({5, 2}));
}

TEST(Embedding, GradientsOfHalvesAreAddedInDoubleAndRoundedOnce) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  Random random(3);
  std::vector<std::int64_t> ids;
  DenseArray<Half> gradient{{5000, 3}, {}};
  std::map<std::int64_t, std::vector<double>> truth;
  for (std::int64_t i = 0; i < 5000; ++i) {
    ids.push_back(random.below(1'000'000) * 1'000'000);
    if (i % 3 == 0) ids.back() = 17;
    auto& sums = truth[ids.back()];
    sums.resize(3);
    for (double& sum : sums) {
      gradient.values.push_back(Half(float(random.unit())));
      sum += cast_value<double>(gradient.values.back());
    }
  }
  const auto result =
      embedding_gradient<Half>(ids, gradient, std::int64_t{1'000'000'000'000}, *executor);
  ASSERT_EQ(result.stored(), std::ssize(truth));
  std::int64_t row = 0;
  for (const auto& [id, sums] : truth) {
    EXPECT_EQ(result.rows[std::size_t(row)], id);
    for (std::size_t k = 0; k < 3; ++k)
      EXPECT_EQ(result.row(row)[k].bits, cast_value<Half>(sums[k]).bits);
    ++row;
  }
  const auto one = make_executor(ExecutorKind::Threads, 1);
  EXPECT_EQ(embedding_gradient<Half>(ids, gradient, std::int64_t{1'000'000'000'000}, *one), result);
}

TEST(Embedding, RefusesIdsOutsideTheTable) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const auto table = test::ones<float>(3, 2);
  for (const std::int64_t id : {-1, 3}) {
    const std::vector<std::int64_t> ids = {0, id};
    EXPECT_THROW(embedding<float>(ids, table, *executor), Error);
    EXPECT_THROW(embedding_gradient<float>(ids, test::ones<float>(2, 2), 3, *executor), Error);
  }
  const std::vector<std::int64_t> one = {0};
  EXPECT_THROW(embedding_gradient<float>(one, test::ones<float>(2, 2), 3, *executor), Error);
}

TEST(OperatorsWithOut, WriteToTheStorageOfOut) {
  Fallbacks fallbacks(Fallbacks::Mode::Strict);
  const Array<float> csr = sparse::Csr<float>{2, 3, {}, {0, 1, 2}, {0, 2}, {2, 3}};
  const Array<float> ones = test::ones<float>(2, 2);
  Array<float> dense = test::ones<float>(3, 2);
  dot(csr, ones, {.transpose_a = true}, fallbacks, dense);
  EXPECT_EQ(std::get<DenseArray<float>>(dense), test::dense<float>({3, 2}, {2, 2, 0, 0, 3, 3}));
  Array<float> rows = row_sparse_zeros<float>({2, 3});
  combine(Binary::Add, csr, csr, fallbacks, rows);
  EXPECT_EQ(std::get<RowSparse<float>>(rows),
            test::row_sparse<float>({2, 3}, {0, 1}, {4, 0, 0, 0, 0, 6}));
  map(Unary::Negative, csr, fallbacks, rows);
  EXPECT_EQ(std::get<RowSparse<float>>(rows).row(1)[2], -3);
  EXPECT_THROW(map(Unary::Negative, csr, fallbacks, dense), Error);  // another shape
}

TEST(ShortTypes, ProductsAreTakenInFloatAndRoundedOnce) {
  Fallbacks fallbacks;
  const Array<Half> csr = sparse::Csr<Half>{1, 2, {}, {0, 2}, {0, 1}, {Half(2048.0f), Half(1.0f)}};
  const Array<Half> b = DenseArray<Half>{{2, 1}, {Half(1.0f), Half(1.0f)}};
  const auto product = std::get<DenseArray<Half>>(dot(csr, b, {}, fallbacks));
  EXPECT_EQ(float(product.values[0]), 2048.0f);  // 2049 is no half
  EXPECT_EQ(float(norm(csr)), 2048.0f);
  const auto twice = std::get<sparse::Csr<Half>>(combine(Binary::Add, csr, csr, fallbacks));
  EXPECT_EQ(float(twice.values[0]), 4096.0f);
}

}  // namespace
}  // namespace tessera::arrays
