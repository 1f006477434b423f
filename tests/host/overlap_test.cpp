// Results that share memory with the lists of a sparse operand are refused before any work, by
// every product.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/gradient_places.hpp"
#include "tessera/host/mask_product.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::host {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kX = 40, kY = 50, kZ = 4;

// The lists of a matrix as three runs of one memory, so that a result may lie in each of them.
class Shared {
 public:
  Shared()
      : pattern_(sparse::random_pattern(kX, kY, {1, 1}, 0.5, 3)),
        memory_(3 * kRun),
        b_(random_matrix<float>(kY, kZ, 5)) {
    std::ranges::copy(pattern_.row_begin, positions());
    std::ranges::copy(pattern_.col, columns());
    std::int32_t* row = rows();
    for (std::int64_t r = 0; r < kX; ++r)
      for (auto i = pattern_.row_begin[std::size_t(r)]; i < pattern_.row_begin[std::size_t(r) + 1];
           ++i)
        *row++ = std::int32_t(r);
  }

  std::size_t places() const { return pattern_.col.size(); }
  CompressedRows<float> by_rows() {
    return {kX, kY, {1, 1}, {positions(), kX + 1}, {columns(), places()}, pattern_.values};
  }
  // The transpose, with the same lists.
  CompressedColumns<float> by_columns() {
    return {kY, kX, {positions(), kX + 1}, {columns(), places()}, pattern_.values};
  }
  Coordinates<float> by_places() {
    return {kX, kY, {rows(), places()}, {columns(), places()}, pattern_.values};
  }

  // A matrix in the memory of the positions, columns or rows.
  MatrixView<float> result_in(int run, std::int64_t rows_of) {
    return {reinterpret_cast<float*>(memory_.data() + run * kRun), rows_of, kZ, kZ, 1};
  }
  std::span<float> values_in(int run) {
    return {reinterpret_cast<float*>(memory_.data() + run * kRun), places()};
  }

  const std::vector<std::int32_t>& memory() const { return memory_; }
  const Matrix<float>& b() const { return b_; }
  const sparse::Csr<float>& pattern() const { return pattern_; }

 private:
  static constexpr std::ptrdiff_t kRun = 4096;
  std::int32_t* positions() { return memory_.data(); }
  std::int32_t* columns() { return memory_.data() + kRun; }
  std::int32_t* rows() { return memory_.data() + 2 * kRun; }

  sparse::Csr<float> pattern_;
  std::vector<std::int32_t> memory_;
  Matrix<float> b_;
};

class ResultOver : public testing::Test {
 protected:
  // The call must be refused for the reason, and must have written nothing.
  template <class Call>
  void expect_refused(const Call& call, const std::string& reason) {
    const std::vector<std::int32_t> before = shared_.memory();
    EXPECT_THAT(test::refusal(call), HasSubstr(reason));
    EXPECT_EQ(shared_.memory(), before) << reason;
  }

  Shared shared_;
  std::unique_ptr<Executor> executor_ = make_executor(2);
};

TEST_F(ResultOver, TheListsOfASparseOperandIsRefusedBySpmm) {
  const Matrix<float> b = shared_.b(), of_transpose = random_matrix<float>(kX, kZ, 6);
  const auto rows = [&](int run) {
    spmm<float>(shared_.by_rows(), b.view(), shared_.result_in(run, kX), *executor_);
  };
  expect_refused([&] { rows(0); }, "the row positions of A");
  expect_refused([&] { rows(1); }, "the columns of A");
  const auto columns = [&](int run) {
    spmm<float>(shared_.by_columns(), of_transpose.view(), shared_.result_in(run, kY), *executor_);
  };
  expect_refused([&] { columns(0); }, "the column positions of A");
  expect_refused([&] { columns(1); }, "the rows of A");
  const auto places = [&](int run) {
    spmm<float>(shared_.by_places(), b.view(), shared_.result_in(run, kX), *executor_);
  };
  expect_refused([&] { places(1); }, "the columns of A");
  expect_refused([&] { places(2); }, "the rows of A");
}

TEST_F(ResultOver, TheListsOfASparseOperandIsRefusedForAVector) {
  const std::vector<float> x(kY, 1.0f);
  expect_refused(
      [&] {
        spmv<float>(shared_.by_rows(), std::span<const float>(x), shared_.values_in(1).first(kX),
                    *executor_);
      },
      "the columns of A");
}

TEST_F(ResultOver, TheListsOfAPatternIsRefusedBySddmm) {
  const auto a = random_matrix<float>(kX, kZ, 7);
  const Matrix<float> b = shared_.b();
  const auto b_rows = b.view().transposed(), a_rows = a.view().transposed();
  for (const auto& [run, reason] : {std::pair(0, "the row positions"), {1, "the columns of A"}})
    expect_refused(
        [&, r = run] {
          sddmm<float>(shared_.by_rows(), a.view(), b_rows, shared_.values_in(r), *executor_);
        },
        reason);
  for (const auto& [run, reason] : {std::pair(0, "the column positions"), {1, "the rows of A"}})
    expect_refused(
        [&, r = run] {
          sddmm<float>(shared_.by_columns(), b.view(), a_rows, shared_.values_in(r), *executor_);
        },
        reason);
  for (const auto& [run, reason] : {std::pair(2, "the rows of A"), {1, "the columns of A"}})
    expect_refused(
        [&, r = run] {
          sddmm<float>(shared_.by_places(), a.view(), b_rows, shared_.values_in(r), *executor_);
        },
        reason);
}

TEST_F(ResultOver, TheValuesOfThePatternIsWhereSddmmMayWrite) {
  sparse::Csr<float> pattern = shared_.pattern();
  const auto a = random_matrix<float>(kX, kZ, 7);
  std::vector<float> apart(pattern.values.size());
  const CompressedRows<float, std::int32_t, std::int64_t> view{
      kX, kY, {1, 1}, pattern.row_begin, pattern.col, pattern.values};
  const auto b = shared_.b().view().transposed();
  sddmm<float>(view, a.view(), b, std::span(apart), *executor_);
  sddmm<float>(view, a.view(), b, std::span(pattern.values), *executor_);
  EXPECT_EQ(pattern.values, apart);
}

TEST_F(ResultOver, TheListsOfPlacesIsRefusedByTheirGradient) {
  const auto q_grad = random_matrix<float>(kX, kZ, 7);
  std::vector<std::int64_t> memory(4096);
  const sparse::Csr<float>& pattern = shared_.pattern();
  std::ranges::copy(pattern.row_begin, memory.begin());
  const std::span<float> over(reinterpret_cast<float*>(memory.data()), pattern.col.size());
  const GradientPlaces places{{1, 1}, {memory.data(), kX + 1}, pattern.col};
  const GradientOperands operands{q_grad.view(), shared_.b().view()};
  EXPECT_THAT(test::refusal([&] { gradient_at_places(operands, places, *executor_, over); }),
              HasSubstr("row_begin"));
  const PlacesGradient all({1, 1}, std::ssize(pattern.col), {&operands, 1}, *executor_);
  EXPECT_THAT(test::refusal([&] { all.compute(0, places.row_begin, places.col, over); }),
              HasSubstr("row_begin"));
}

TEST_F(ResultOver, TheMaskIsRefusedByAProductAtIt) {
  std::vector<sparse::Csr<float>> masks{shared_.pattern()};
  const auto a = random_matrix<float>(kX, kZ, 7);
  EXPECT_THAT(test::refusal([&] {
                mask_product<float>(masks, false, true, a.view(), shared_.b().view(),
                                    std::span(masks[0].values), *executor_);
              }),
              HasSubstr("the mask"));
}

}  // namespace
}  // namespace tessera::host
