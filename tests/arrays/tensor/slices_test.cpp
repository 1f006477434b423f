#include "tessera/arrays/tensor/slices.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::box;
using test::draw;
using test::raises;

TEST(Slices, OneSliceIsTheSameMatrixDenseCsrAndCsc) {
  const auto side = box().select({All{}, Point{1}});
  const sparse::Csr<float> expected = draw({".2.", "..5", "..7", "9.."});
  EXPECT_EQ(to_csr(side), expected);
  EXPECT_EQ(to_csc(side), to_csc(expected));
  EXPECT_EQ(to_dense(side), to_dense(expected));
}

TEST(Slices, OfATensorInAnotherOrderAreLegalToo) {
  auto turned = box();
  turned.sort_by({2, 1, 0});
  const sparse::Csr<float> slice = to_csr(turned.select({All{}, Point{0}}));
  check(slice);
  EXPECT_EQ(slice, draw({"..1", "34.", ".6.", ".8."}));
}

TEST(Slices, OfALineWithANewAxisAreARowAndAColumn) {
  const auto line = test::tensor<float>({4}, {"1", "3"}, {5, 6});
  EXPECT_EQ(to_csr(line.select({NewAxis{}})), draw({".5.6"}));
  EXPECT_EQ(to_csr(line.select({All{}, NewAxis{}})), draw({".", "5", ".", "6"}));
}

TEST(Slices, ADenseTensorIsRowMajorInTheView) {
  EXPECT_EQ(to_dense_values(box().select({Interval{2, 4}, NewAxis{}, All{}, Interval{1, 3}})),
            (std::vector<float>{6, 0, 0, 7, 8, 0, 0, 0}));
}

TEST(Slices, MatricesGoThereAndBack) {
  for (const sparse::Csr<float>& matrix : {draw({}), draw({"..."}), draw({"1.2", "...", ".0."})}) {
    EXPECT_EQ(to_csr(to_tensor(matrix)), matrix);
    EXPECT_EQ(to_csr(to_sliced(matrix)), matrix);
    EXPECT_EQ(to_csc(to_sliced(to_csc(matrix))), to_csc(matrix));
    EXPECT_EQ(to_csr(to_sliced(to_csc(matrix))), matrix);
  }
}

TEST(Slices, RefuseWhatIsNoMatrixOrHasBlocks) {
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"[4, 2, 3]"}, [] { to_csr(box()); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"[4, 2, 3]"}, [] { to_dense(box()); }));
  const sparse::Csr<float> blocks = sparse::with_block(draw({"12", "34"}), {2, 2});
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2"}, [&] { to_tensor(blocks); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2"}, [&] { to_sliced(blocks); }));
  const CooTensor<float> huge(test::Shape{1 << 30, 1 << 30, 1 << 30});
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {}, [&] { to_dense_values(huge); }));
}

}  // namespace
}  // namespace tessera::arrays
