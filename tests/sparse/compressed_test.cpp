#include "tessera/sparse/compressed.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::sparse {
namespace {

using test::raises;
using Indices = std::vector<std::int64_t>;

TEST(CompressIndices, DM_08_CountsTheEntriesOfRows) {
  EXPECT_EQ(compress_indices(Indices{0, 1, 1}, 3), (Indices{0, 1, 3, 3}));
  EXPECT_EQ(compress_indices(Indices{0, 0, 2}, 3), (Indices{0, 2, 2, 3}));
  EXPECT_EQ(compress_indices(Indices{1, 1, 2}, 3), (Indices{0, 0, 2, 3}));
  EXPECT_EQ(compress_indices(Indices{}, 3), (Indices{0, 0, 0, 0}));
  EXPECT_EQ(compress_indices(Indices{2}, 3), (Indices{0, 0, 0, 1}));
  EXPECT_EQ(compress_indices(Indices{0, 0, 1, 1, 1, 2, 2, 2, 2}, 3), (Indices{0, 2, 5, 9}));
  EXPECT_EQ(compress_indices(Indices{0, 0, 2, 2, 2, 2}, 3), (Indices{0, 2, 2, 6}));
  EXPECT_EQ(compress_indices(Indices{}, 0), (Indices{0}));
}

TEST(CompressIndices, RefusesRowsOutsideAndOutOfOrder) {
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 3", "0..2"},
                     [] { compress_indices(Indices{0, 3}, 3); }));
  EXPECT_TRUE(
      raises(ErrorCode::BadInput, {"rows[0] is -1"}, [] { compress_indices(Indices{-1}, 3); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 0", "comes after 1"},
                     [] { compress_indices(Indices{1, 0}, 3); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"-1 rows"}, [] { compress_indices(Indices{}, -1); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"rows"},
                     [] { compress_indices(Indices{}, std::int64_t{1} << 40); }));
}

// A 2 x 3 matrix that keeps every rule; tests break one each.
template <class Index>
struct Given {
  std::vector<Index> crow = {0, 1, 3}, col = {1, 0, 2};
  sparse::CompressedArrays arrays{{}, 2, 3, {}, {}, {}, {}, {3}};

  void check() {
    arrays.crow_indices = std::span<const Index>(crow);
    arrays.col_indices = std::span<const Index>(col);
    sparse::check(arrays);
  }
};

template <class Index>
testing::AssertionResult refused(Given<Index> given, const std::string& text) {
  return raises(ErrorCode::BadInput, {text}, [&] { given.check(); });
}

template <class Index>
class Compressed : public testing::Test {};
using IndexTypes = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Compressed, IndexTypes);

TYPED_TEST(Compressed, TC_01_PointersEndAtTheNumberOfEntries) {
  Given<TypeParam> given;
  EXPECT_NO_THROW(given.check());
  given.crow = {0, 1, 3}, given.col = {0, 1};
  given.arrays.cols = 2, given.arrays.values_shape = {2};
  EXPECT_TRUE(refused(given, "`crow_indices[..., -1] == nnz` is not satisfied"));
}

TYPED_TEST(Compressed, TC_RulesHaveTheMessagesOfTorch) {
  const auto with = [](std::vector<TypeParam> crow, std::vector<TypeParam> col) {
    Given<TypeParam> given;
    given.crow = std::move(crow), given.col = std::move(col);
    return given;
  };
  EXPECT_TRUE(refused(with({1, 1, 3}, {1, 0, 2}), "`crow_indices[..., 0] == 0` is not satisfied"));
  EXPECT_TRUE(refused(with({0, 4, 3}, {1, 0, 2}),
                      "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not"));
  EXPECT_TRUE(refused(with({0, -1, 3}, {1, 0, 2}),
                      "`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not"));
  EXPECT_TRUE(refused(with({0, 1, 3}, {1, 0, 3}), "`0 <= col_indices < ncols` is not satisfied"));
  EXPECT_TRUE(refused(with({0, 1, 3}, {-1, 0, 2}), "`0 <= col_indices < ncols` is not satisfied"));
  EXPECT_TRUE(refused(with({0, 1, 3}, {1, 2, 0}), "sorted and distinct"));
  EXPECT_TRUE(refused(with({0, 1, 3}, {1, 2, 2}), "sorted and distinct"));
  EXPECT_TRUE(refused(with({0, 3}, {1, 0, 2}), "crow_indices have wrong shape"));
  EXPECT_TRUE(refused(with({}, {1, 0, 2}), "crow_indices have wrong shape"));
  EXPECT_TRUE(refused(with({0, 1, 3}, {1, 0}), "col_indices have wrong shape"));
}

TYPED_TEST(Compressed, TC_02_BlocksCountAsOneEntry) {
  Matrix<float> arange(4, 6);
  for (std::size_t i = 0; i < 24; ++i) arange.elements()[i] = float(i);
  const sparse::Csr<float> bsr = from_dense(std::as_const(arange).view(), {2, 3});
  EXPECT_EQ(bsr.row_begin, (Indices{0, 2, 4}));
  EXPECT_EQ(bsr.col, (std::vector<std::int32_t>{0, 1, 0, 1}));
  Given<TypeParam> given{{0, 2, 4}, {0, 1, 0, 1}, {{}, 4, 6, {2, 3}, {}, {}, {}, {4, 2, 3}}};
  EXPECT_NO_THROW(given.check());
  Given<TypeParam> uneven = given;
  uneven.arrays.rows = 5;
  EXPECT_TRUE(refused(uneven, "divisible by blocks of 2 x 3"));
  Given<TypeParam> flat = given;
  flat.arrays.values_shape = {4};
  EXPECT_TRUE(refused(flat, "values have wrong shape (4); (4, 2, 3)"));
}

TYPED_TEST(Compressed, TC_03_AKnownMisprintIsRefused) {
  const sparse::Csr<double> right = to_csr(
      sparse::Coo<double>{4, 6, {}, {0, 1, 2, 2, 3}, {0, 2, 0, 5, 1}, {2.5, 1.5, 1.5, 2.5, 2.0}});
  EXPECT_EQ(right.row_begin, (Indices{0, 1, 2, 4, 5}));
  Given<TypeParam> given{{0, 1, 2, 4, 5}, {0, 2, 0, 5, 1}, {{}, 4, 6, {}, {}, {}, {}, {5}}};
  EXPECT_NO_THROW(given.check());
  given.crow = {0, 1, 2, 4, 5, 5};
  EXPECT_TRUE(refused(given, "crow_indices have wrong shape"));
}

TYPED_TEST(Compressed, BatchesAndDenseDimensionsAreChecked) {
  Given<TypeParam> given{{0, 1, 2, 0, 2, 2}, {0, 1, 0, 1}, {{2}, 2, 2, {}, {5}, {}, {}, {2, 2, 5}}};
  EXPECT_NO_THROW(given.check());
  given.crow = {0, 1, 2, 0, 2, 1};
  EXPECT_TRUE(refused(given, "`crow_indices[..., -1] == nnz`"));
  given.arrays.values_shape = {2, 2};
  EXPECT_TRUE(refused(given, "values have wrong shape (2, 2); (2, 2, 5)"));
}

TEST(CompressedTypes, UnsignedAndMixedIndicesAreRefused) {
  const std::vector<std::uint32_t> crow = {0, 1}, col = {0};
  const std::vector<std::int64_t> signed_col = {0};
  sparse::CompressedArrays arrays{{}, 1, 1, {}, {}, std::span(crow), std::span(col), {1}};
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"int32 or int64", "uint32"}, [&] { check(arrays); }));
  arrays.col_indices = std::span(signed_col);
  EXPECT_TRUE(
      raises(ErrorCode::BadInput, {"same dtype", "uint32", "int64"}, [&] { check(arrays); }));
}

TEST(CompressedTypes, SizesThatLeaveTheirBits) {
  const std::vector<std::int32_t> crow = {0}, col;
  sparse::CompressedArrays arrays{
      {}, 0, std::int64_t{1} << 31, {}, {}, std::span(crow), std::span(col), {0}};
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"32-bit integer overflow", "column dimension"},
                     [&] { check(arrays); }));
  const std::int64_t huge = std::int64_t{1} << 40;
  arrays = {{huge, huge}, 0, 1, {}, {}, std::span(crow), std::span(col), {huge, huge, 0}};
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"elements"}, [&] { check(arrays); }));
  arrays = {{}, 0, 0, {}, {}, std::span(crow), std::span(col), {0}};
  EXPECT_NO_THROW(check(arrays));
  arrays.rows = -1;
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"-1 x 0"}, [&] { check(arrays); }));
  // The difference of these two leaves 64 bits.
  const std::vector<std::int64_t> wild = {0, std::numeric_limits<std::int64_t>::min(), 0}, none;
  arrays = {{}, 2, 1, {}, {}, std::span(wild), std::span(none), {0}};
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"<= ncols"}, [&] { check(arrays); }));
}

}  // namespace
}  // namespace tessera::sparse
