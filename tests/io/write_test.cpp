#include "tessera/io/write.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/sparse/drawing.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::draw;
using test::raises;

TEST(Write, WritesADrawingInBothFormats) {
  const auto m = draw({".1..2.", "......", "3....0"});
  EXPECT_EQ(write_smtx(m), "3, 6, 4\n0 2 2 4\n1 4 0 5\n");
  EXPECT_EQ(write_mtx(m),
            "%%MatrixMarket matrix coordinate real general\n3 6 4\n1 2 1\n1 5 2\n3 1 3\n3 6 0\n");
  EXPECT_EQ(write_mtx(m, MtxField::Pattern),
            "%%MatrixMarket matrix coordinate pattern general\n3 6 4\n1 2\n1 5\n3 1\n3 6\n");
}

TEST(Write, WritesAMaskOfBlocksThatIsReadBack) {
  const auto m = sparse::with_block(draw({"11..", "11..", "....", "...1"}), BlockShape{2, 2});
  EXPECT_EQ(write_mask(m), "2 2\n1 0\n0 1\n");
  EXPECT_EQ(read_mask(write_mask(m), "mask").matrix.col, m.col);
}

TEST(Write, WritesEmptyMatrices) {
  EXPECT_EQ(write_smtx(draw({"..", ".."})), "2, 2, 0\n0 0 0\n\n");
  EXPECT_EQ(read_smtx(write_smtx(sparse::Csr<float>{}), "w").matrix, sparse::Csr<double>{});
  EXPECT_EQ(read_mtx(write_mtx(sparse::Csr<float>{}), "w").matrix, sparse::Csr<double>{});
}

// Values of every magnitude, the ends of the range and subnormals among them.
template <class T>
std::vector<T> hard_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           T(0),
                           T(0.1),
                           T(1) / 3,
                           Limits::infinity(),
                           -Limits::infinity(),
                           T(1) + Limits::epsilon()};
  Random random(41);
  for (int i = 0; i < 500; ++i)
    values.push_back(std::ldexp(static_cast<T>(random.unit() - 0.5), i % 100 - 50));
  return values;
}

template <class T>
sparse::Csr<T> as_row(const std::vector<T>& values) {
  sparse::Csr<T> m;
  m.rows = 1, m.cols = static_cast<std::int64_t>(values.size());
  m.row_begin = {0, m.cols};
  for (std::int32_t c = 0; c < m.cols; ++c) m.col.push_back(c);
  m.values = values;
  return m;
}

TEST(Write, KeepsEveryValueBitForBit) {
  const auto doubles = as_row(hard_values<double>());
  EXPECT_EQ(read_mtx(write_mtx(doubles), "w").matrix, doubles);
  const auto floats = as_row(hard_values<float>());
  EXPECT_EQ(cast<float>(read_mtx(write_mtx(floats), "w").matrix), floats);
  const auto zero = as_row<double>({-0.0, NAN});
  const auto read = read_mtx(write_mtx(zero), "w").matrix;
  EXPECT_TRUE(std::signbit(read.values[0]));
  EXPECT_TRUE(std::isnan(read.values[1]));
}

TEST(Write, WritesBlocksElementByElement) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}, BlockShape{4, 4}}) {
    const auto m = sparse::random_pattern(24, 36, block, 0.3, 8);
    const auto elements = cast<double>(sparse::with_block(m, {1, 1}));
    EXPECT_EQ(read_mtx(write_mtx(m), "w").matrix, elements);
    const auto pattern = read_smtx(write_smtx(m), "w").matrix;
    EXPECT_EQ(pattern.row_begin, elements.row_begin);
    EXPECT_EQ(pattern.col, elements.col);
    EXPECT_EQ(read_mtx(write_mtx(m, MtxField::Pattern), "w").matrix, pattern);
  }
}

TEST(Write, RefusesAnIllegalMatrix) {
  auto m = draw({"1.", ".2"});
  m.col[1] = 2;
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"block column 2"}, [&m] { write_mtx(m); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"block column 2"}, [&m] { write_smtx(m); }));
}

class WriteFile : public testing::Test {
 protected:
  std::int64_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }
  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(WriteFile, PutsTheWholeTextInPlaceAndLeavesNothingElse) {
  const auto m = draw({".1..2.", "......", "3....0"});
  write_mtx_file(folder_ / "a.mtx", m);
  write_smtx_file(folder_ / "a.smtx", m);
  EXPECT_EQ(read_matrix(folder_ / "a.mtx").matrix, cast<double>(m));
  EXPECT_EQ(read_matrix(folder_ / "a.smtx").matrix.col, m.col);
  write_mtx_file(folder_ / "a.mtx", draw({"7"}));  // over the old one
  EXPECT_EQ(read_matrix(folder_ / "a.mtx").matrix, cast<double>(draw({"7"})));
  EXPECT_EQ(files(), 2);
}

TEST_F(WriteFile, SaysWhyItCouldNotWriteAndLeavesNothing) {
  const auto m = draw({"1"});
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"none", "No such file or directory"},
                     [&] { write_mtx_file(folder_ / "none" / "a.mtx", m); }));
  std::filesystem::create_directory(folder_ / "d.mtx");
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"d.mtx", "directory"},
                     [&] { write_mtx_file(folder_ / "d.mtx", m); }));
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace tessera::io
