// Numbers that are read as floats are rounded once, in every format.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/io/array.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/row_file.hpp"
#include "tessera/tests/io/array_files.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ReadOptions kFloats{.precision = Precision::Float};
constexpr float kMost = std::numeric_limits<float>::max();

// Just above the middle of 1 and the next float. The nearest double is that middle, from which a
// second rounding leads to 1.
const std::string kAboveMiddle = "1.00000005960464477539062500000000000000000000000000000001";

std::string mtx(const std::string& value, const std::string& kind = "coordinate real general") {
  const bool is_array = kind.starts_with("array");
  return "%%MatrixMarket matrix " + kind + "\n1 1" + (is_array ? "\n" : " 1\n1 1 ") + value + "\n";
}

double read_value(const std::string& text) {
  return read_mtx(text, "a.mtx", kFloats).matrix.values.at(0);
}

TEST(Floats, OfTextAreNearestToTheDigits) {
  const float next = std::nextafter(1.0F, 2.0F);
  EXPECT_EQ(read_value(mtx(kAboveMiddle)), next);
  EXPECT_EQ(read_value(mtx(kAboveMiddle, "array real general")), next);
  EXPECT_EQ(read_value(mtx("+" + kAboveMiddle)), next) << "the slow path";
  EXPECT_EQ(read_mtx(mtx(kAboveMiddle), "a").matrix.values[0], 1 + 0x1p-24) << "a double";
  EXPECT_EQ(read_value(mtx("3.4028235e38")), kMost);
  EXPECT_EQ(read_value(mtx("-3.40282356e38")), -kMost)
      << "nearer to the largest float than to 2^128";
  EXPECT_EQ(read_value(mtx("1e-60")), 0) << "the nearest float";
  EXPECT_EQ(read_value(mtx("1e-45")), std::numeric_limits<float>::denorm_min());
  EXPECT_TRUE(std::isinf(read_value(mtx("inf")))) << "the file says so";
  EXPECT_TRUE(std::isnan(read_value(mtx("nan"))));
}

TEST(Floats, BeyondTheLargestAreRefusedInEveryFormat) {
  const tessera::test::TemporaryFolder folder;
  for (const char* value : {"1e39", "-1e300", "3.4028236e38"})
    EXPECT_THAT(message_of([&] { read_value(mtx(value)); }),
                HasSubstr(std::string("a.mtx:3: value is \"") + value + "\"; it is beyond"));
  EXPECT_EQ(read_mtx(mtx("1e39"), "a").matrix.values[0], 1e39) << "a double";
  Matrix<double> dense(1, 1);
  dense(0, 0) = 1e39;
  std::vector<std::string> files{
      folder.write("a.mtx", mtx("1e39")),
      folder.write("a.npy", write_npy(std::as_const(dense).view())),
      folder.write("a.safetensors", write_safetensors(std::as_const(dense).view(), "w")),
      folder.write("A.SAFETENSORS", write_safetensors(std::as_const(dense).view(), "w"))};
  files.push_back(files[2] + "#w");
  if (can_read_npz())
    files.push_back(folder.write(
        "a.npz", write_npz(sparse::Csr<double>{
                     .rows = 1, .cols = 1, .row_begin = {0, 1}, .col = {0}, .values = {1e39}})));
  for (const std::string& file : files) {
    EXPECT_THAT(message_of([&] { read_matrix(file, kFloats); }), HasSubstr("3.4e38")) << file;
    EXPECT_EQ(read_matrix(file).matrix.values, std::vector<double>{1e39}) << file;
  }
}

TEST(Floats, OfRowsAreThoseOfTheWholeFile) {
  const tessera::test::TemporaryFolder folder;
  const std::string file = folder.write("a.mtx", mtx(kAboveMiddle));
  EXPECT_THAT(read_rows<float>(file, index_rows(file), {0, 1}).values,
              ElementsAre(std::nextafter(1.0F, 2.0F)));
  EXPECT_THAT(read_rows<double>(file, index_rows(file), {0, 1}).values, ElementsAre(1 + 0x1p-24));
  std::vector<std::string> files{folder.write("b.mtx", mtx("1e39"))};
  if (can_read_npz())
    files.push_back(folder.write(
        "b.npz", write_npz(sparse::Csr<double>{
                     .rows = 1, .cols = 1, .row_begin = {0, 1}, .col = {0}, .values = {1e39}})));
  for (const std::string& large : files) {
    const RowIndex index = index_rows(large);
    EXPECT_THAT(message_of([&] { read_rows<float>(large, index, {0, 1}); }), HasSubstr("3.4e38"));
    EXPECT_THAT(read_rows<double>(large, index, {0, 1}).values, ElementsAre(1e39));
  }
}

}  // namespace
}  // namespace tessera::io
