#include "tessera/tests/sparse/drawing.hpp"

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

TEST(Drawing, StoresDigitsAndLeavesDotsOut) {
  const auto m = draw({".2..", "0..3"});
  EXPECT_EQ(m.rows, 2);
  EXPECT_EQ(m.cols, 4);
  EXPECT_EQ(m.row_begin, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(m.col, (std::vector<std::int32_t>{1, 0, 3}));
  EXPECT_EQ(m.values, (std::vector<float>{2, 0, 3}));
}

TEST(Raises, RejectsSilenceAWrongCodeAndAMissingPart) {
  const auto fail = [] { throw Error(ErrorCode::BadInput, "row 3 is wrong"); };
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"row 3", "wrong"}, fail));
  EXPECT_FALSE(raises(ErrorCode::LimitExceeded, {"row 3"}, fail));
  EXPECT_FALSE(raises(ErrorCode::BadInput, {"row 4"}, fail));
  EXPECT_FALSE(raises(ErrorCode::BadInput, {}, [] {}));
}

}  // namespace
}  // namespace tessera::test
