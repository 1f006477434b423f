// Everything that is refused, with nothing changed.

#include <gtest/gtest.h>

#include <limits>

#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::dense;
using test::Dimensions;
using test::draw;
using test::ones;
using test::raises;
using test::Rows;

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TEST(RowSparseRefuses, RSP_11_BrokenCsr) {
  const auto broken = [](std::vector<std::int64_t> begin, std::vector<std::int32_t> col) {
    return Array<float>(sparse::Csr<float>{3, 4, {}, std::move(begin), std::move(col), {7, 8, 9}});
  };
  EXPECT_NO_THROW(check(broken({0, 2, 2, 3}, {0, 2, 1})));
  for (const auto& [array, text] : std::vector<std::pair<Array<float>, std::string>>{
           {broken({0, 5, 2, 3}, {0, 2, 1}), "descends"},
           {broken({0, 2, 2, 3}, {2, 1, 1}), "col[1]"},
           {broken({0, 2, 2, 4}, {0, 2, 1}), "row_begin[3]"},
           {broken({0, -2, 2, 3}, {0, 2, 1}), "descends"}})
    EXPECT_TRUE(raises(ErrorCode::BadInput, {text}, [&] { check(array); }));
}

TEST(RowSparseRefuses, RSP_12_BrokenRows) {
  const auto broken = [](Rows rows) { return test::row_sparse<float>({3, 2}, rows, {1, 2, 3, 4}); };
  EXPECT_NO_THROW(check(broken({1, 2})));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 4"}, [&] { check(broken({1, 4})); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 0"}, [&] { check(broken({1, 0})); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is -2"}, [&] { check(broken({1, -2})); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 1"}, [&] { check(broken({1, 1})); }));
}

TEST(RowSparseRefuses, RSP_13_CastsThatAreNotInTheTable) {
  const auto refused = [](const Array<float>& array, Storage to, const std::string& text) {
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {text}, [&] { cast_storage(array, to); }));
  };
  refused(dense({3}, {1, 2, 3}), Storage::Csr, "3 cannot be csr");
  refused(dense({1, 2, 1}, {1, 2}), Storage::Csr, "1 x 2 x 1");
  refused(draw({"1."}), Storage::RowSparse, "csr cannot become row_sparse");
  refused(row_sparse_zeros<float>({2, 2}), Storage::Csr, "row_sparse cannot become csr");
}

TEST(RowSparseRefuses, ArrayLengthsThatDisagree) {
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"3 values", "need 4"},
                     [] { check(test::row_sparse<float>({3, 2}, {0, 1}, {1, 2, 3})); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"2 x 2", "3 values", "needs 4"},
                     [] { check(dense({2, 2}, {1, 2, 3})); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"2 x 2 for 1 rows"},
                     [] { arrays::row_sparse(ones(2, 2), {1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"shape mismatch", "2 x 2", "6 x 3"},
                     [] { arrays::row_sparse(ones(2, 2), {1, 2}, Dimensions{6, 3}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"invalid shape"},
                     [] { arrays::row_sparse(dense({0, 2}, {}), {}); }));
}

TEST(RowSparseRefuses, ShapesThatCannotBe) {
  EXPECT_TRUE(
      raises(ErrorCode::BadInput, {"dimension 1", "-1"}, [] { row_sparse_zeros<float>({2, -1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"empty"}, [] { row_sparse_zeros<float>({}); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"elements"},
                     [] { row_sparse_zeros<float>({kHuge, kHuge}); }));
  // A zero does not hide that the rest overflows.
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"elements"},
                     [] { row_sparse_zeros<float>({0, kHuge, kHuge}); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"rows"}, [] {
    arrays::row_sparse(ones(1, 1), {std::numeric_limits<std::int64_t>::max()});
  }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2 x 1"},
                     [] { to_csr(row_sparse_zeros<float>({2, 2, 1})); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"rows of a csr"},
                     [] { to_csr(row_sparse_zeros<float>({kHuge, 2})); }));
}

TEST(RowSparseRefuses, RowsToRetainThatCannotBe) {
  const auto array = test::row_sparse<float>({3, 1}, {1}, {5});
  const auto refused = [&](std::vector<float> rows, const std::string& text) {
    EXPECT_TRUE(
        raises(ErrorCode::InvalidArgument, {text}, [&] { retain<float, float>(array, rows); }));
  };
  refused({0, 3}, "rows[1] is 3");
  refused({-1}, "rows[0] is -1");
  refused({2, 1}, "stands after 2");
  refused({1, 1}, "stands after 1");
  refused({0.5f}, "whole");
  refused({std::numeric_limits<float>::quiet_NaN()}, "whole");
  refused({std::numeric_limits<float>::infinity()}, "whole");
}

TEST(RowSparseRefuses, ToDestroyTheDestinationOfABadCopy) {
  const Array<float> wrong_shape = ones(3, 2), no_cast = draw({"12", "3."});
  Array<float> rows = test::row_sparse<float>({2, 2}, {1}, {5, 6}), csr = no_cast;
  const Array<float> before = rows;
  EXPECT_TRUE(
      raises(ErrorCode::InvalidArgument, {"3 x 2", "2 x 2"}, [&] { copy_to(wrong_shape, rows); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"csr"}, [&] { copy_to(no_cast, rows); }));
  EXPECT_EQ(rows, before);
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"csr"}, [&] { fill(csr, 1.0f); }));
  EXPECT_EQ(csr, no_cast);
}

TEST(RowSparseRefuses, Blocks) {
  sparse::Csr<float> blocks = draw({"1.", ".2"});
  blocks.block = {2, 2}, blocks.row_begin = {0, 1}, blocks.col = {0}, blocks.values = {1, 2, 3, 4};
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2"}, [&] { check(Array<float>(blocks)); }));
}

// With a loop over the rows none of these would end.
TEST(RowsWithoutElements, CostNothingHoweverManyThereAre) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const DenseArray<float> many{{kMost, 0}, {}};
  EXPECT_EQ(to_row_sparse(many).rows, Rows{});
  Array<float> rows = RowSparse<float>{{kMost, 0}, {}, {}};
  fill(rows, 1.0f);
  EXPECT_EQ(std::get<RowSparse<float>>(rows).rows, Rows{});
}

}  // namespace
}  // namespace tessera::arrays
