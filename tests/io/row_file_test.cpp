// Rows of files without the rest, against the readers of whole files.

#include "tessera/io/row_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/zip.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::message_of;
using test::TemporaryFolder;

void expect_rows_of_the_whole(const std::string& path) {
  const auto whole = sparse::cast<float>(read_matrix(path).matrix);
  const RowIndex index = index_rows(path);
  EXPECT_EQ(index.rows, whole.rows);
  EXPECT_EQ(index.cols, whole.cols);
  EXPECT_EQ(index.row_begin, whole.row_begin);
  for (const Range rows : {Range{0, whole.rows}, Range{0, 0}, Range{0, whole.rows / 2},
                           Range{whole.rows / 2, whole.rows}, Range{whole.rows, whole.rows}}) {
    const sparse::Csr<float> part = read_rows<float>(path, index, rows);
    const auto first = whole.row_begin[std::size_t(rows.begin)];
    const auto end = whole.row_begin[std::size_t(rows.end)];
    EXPECT_EQ(part.rows, rows.size());
    EXPECT_EQ(part.col,
              std::vector<std::int32_t>(whole.col.begin() + first, whole.col.begin() + end));
    EXPECT_EQ(part.values,
              std::vector<float>(whole.values.begin() + first, whole.values.begin() + end));
    EXPECT_EQ(part.row_begin.back(), end - first);
  }
}

TEST(RowFile, RowsAreThoseOfTheWholeFile) {
  const TemporaryFolder folder;
  auto matrix = sparse::random_pattern(173, 260, {1, 1}, 0.4, 3);  // more than one piece of a file
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = float(i) / 7 - 100;
  expect_rows_of_the_whole(folder.write("a.smtx", write_smtx(matrix)));
  expect_rows_of_the_whole(folder.write("a.mtx", write_mtx(matrix)));
}

TEST(RowFile, RowsOfAnNpzFileAreThoseOfTheWhole) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const TemporaryFolder folder;
  // 175,000 entries: more than one piece of the unpacked arrays.
  auto matrix = sparse::random_pattern(250, 1400, {1, 1}, 0.5, 3);
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = float(i % 977) / 7;
  expect_rows_of_the_whole(folder.write("a.npz", write_npz(matrix)));
  expect_rows_of_the_whole(folder.write(
      "b.npz", write_npz(sparse::Csr<float>{.rows = 3, .cols = 4, .row_begin = {0, 0, 0, 0}})));
}

TEST(RowFile, RowsOfAnNpzFileThatAreNotSortedAreSorted) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const TemporaryFolder folder;
  const std::string other = write_npz(sparse::random_pattern(4, 4, {1, 1}, 0.5, 1));
  const std::string csr = internal::ZipArchive(other, "other").read("format.npy");
  const auto file = [&](const std::vector<std::int32_t>& columns) {
    return folder.write(
        fmt::format("{}.npz", fmt::join(columns, "-")),
        internal::pack({{"format.npy", csr},
                        {"shape.npy", write_npy(std::vector<std::int64_t>{2, 5})},
                        {"indptr.npy", write_npy(std::vector<std::int64_t>{0, 1, 4})},
                        {"indices.npy", write_npy(columns)},
                        {"data.npy", write_npy(std::vector<double>{1, 2, 3, 4})}}));
  };
  const std::string path = file({2, 4, 0, 1});
  const auto row = read_rows<double>(path, index_rows(path), {1, 2});
  EXPECT_EQ(row.col, (std::vector<std::int32_t>{0, 1, 4}));
  EXPECT_EQ(row.values, (std::vector<double>{3, 4, 2}));
  const std::string twice = file({2, 4, 0, 4});
  EXPECT_NE(message_of([&] {
              read_rows<float>(twice, index_rows(twice), {1, 2});
            }).find("is given twice"),
            std::string::npos);
  const std::string outside = file({2, 5, 0, 4});
  message_of([&] { read_rows<float>(outside, index_rows(outside), {1, 2}); });
}

TEST(RowFile, ADamagedNpzFileIsRefused) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const TemporaryFolder folder;
  const std::string whole = write_npz(sparse::random_pattern(20, 30, {1, 1}, 0.3, 1));
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 13)
    message_of([&] { index_rows(folder.write("a.npz", whole.substr(0, bytes))); });
  const auto blocks = sparse::random_pattern(8, 8, {2, 2}, 0.5, 1);  // a bsr file
  EXPECT_THROW(index_rows(folder.write("b.npz", write_npz(blocks))), NotByRows);
}

TEST(RowFile, EmptyRowsCommentsAndCommasAreRead) {
  const TemporaryFolder folder;
  expect_rows_of_the_whole(folder.write("a.smtx", "% a\n\n5, 4, 3\n0 0 2 2 3 3\n% b\n1,3 0\n"));
  expect_rows_of_the_whole(folder.write("b.smtx", "3 4 0\n0 0 0 0\n\n"));
  expect_rows_of_the_whole(folder.write("c.mtx",
                                        "%%MatrixMarket matrix coordinate pattern general\n% c\n"
                                        "6 3 3\n2 1\r\n\n2 3\n% d\n5 2"));
}

TEST(RowFile, AFileThatIsNotRowByRowIsRefused) {
  const TemporaryFolder folder;
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_NE(message_of([&] {
              index_rows(folder.write("a.mtx", banner + "3 3 2\n2 1 1\n1 1 1\n"));
            }).find("row 1 follows row 2"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              index_rows(folder.write("b.mtx",
                                      "%%MatrixMarket matrix coordinate real symmetric\n1 1 0\n"));
            }).find("must be general"),
            std::string::npos);
  message_of([&] { index_rows(folder.write("c.txt", "1 1 1")); });
  message_of([&] { index_rows(folder / "absent.smtx"); });
}

TEST(RowFile, AFileThatIsCutAnywhereIsRefusedOrHasLessText) {
  const TemporaryFolder folder;
  const std::string smtx = "4 9 5\n0 2 2 4 5\n1 8 0 3 7\n";
  for (std::size_t bytes = 0; bytes + 2 < smtx.size(); ++bytes)
    message_of([&] { index_rows(folder.write("a.smtx", smtx.substr(0, bytes))); });
  const std::string mtx =
      "%%MatrixMarket matrix coordinate real general\n4 9 3\n1 2 5\n3 1 6\n4 4 7\n";
  for (std::size_t bytes = 0; bytes + 6 < mtx.size(); ++bytes)
    message_of([&] { index_rows(folder.write("a.mtx", mtx.substr(0, bytes))); });
}

TEST(RowFile, FaultsOfARowAreFoundByWhoReadsIt) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.smtx", "2 5 4\n0 2 4\n1 3 4 4\n");
  const RowIndex index = index_rows(path);
  EXPECT_EQ(read_rows<float>(path, index, {0, 1}).col, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NE(message_of([&] { read_rows<float>(path, index, {1, 2}); }).find("byte 18: column"),
            std::string::npos);
  folder.write("a.smtx", "2 5 4\n0 2 4\n1 ");
  EXPECT_NE(message_of([&] { read_rows<float>(path, index, {0, 1}); }).find("shorter than it was"),
            std::string::npos);
  test::refusal([&] { read_rows<float>(path, index, {1, 3}); });
}

TEST(RowFile, MoreRowsThanTheFileMayDeclareAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.smtx", "2000000000 5 0\n0\n");
  const std::string message = message_of([&] { index_rows(path); }, ErrorCode::LimitExceeded);
  EXPECT_TRUE(message.starts_with(path)) << message;
}

TEST(RowFile, ColumnsOfAMtxFileMayBeInAnyOrder) {
  const TemporaryFolder folder;
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  const std::string path =
      folder.write("a.mtx", banner + "3 4 5\n1 3 1.5\n1 1 2\n3 4 -1\n3 1 3\n3 2 4\n");
  expect_rows_of_the_whole(path);
  const std::string twice = folder.write("b.mtx", banner + "3 4 3\n2 3 1\n2 1 2\n2 3 5\n");
  EXPECT_NE(message_of([&] {
              read_rows<float>(twice, index_rows(twice), {1, 3});
            }).find("row 2, column 3 is given twice"),
            std::string::npos);
}

// Both readers take the same files and read the same numbers.
TEST(RowFile, NumbersAreReadAsInWholeFiles) {
  const TemporaryFolder folder;
  const std::string banner = "%%MatrixMarket matrix coordinate ";
  expect_rows_of_the_whole(
      folder.write("a.mtx", banner + "real general\n+2 2 2\n1 +1 +1.5e+00\n2\v2\f-2.5\n"));
  expect_rows_of_the_whole(folder.write("b.smtx", "2, 2, +2\n0, +1, 2\n+1,\v0\n"));
  for (const char* const wrong :
       {"integer general\n1 1 1\n1 1 2.5\n", "integer general\n1 1 1\n1 1 9007199254740993\n",
        "real general\n1 1 1\n1,1,3.0\n", "real general\n1,1,0\n",
        "real general\n1 1 1\n1 1 1e400\n"}) {
    const std::string path = folder.write("c.mtx", banner + wrong);
    message_of([&] { read_matrix(path); });
    message_of([&] { read_rows<float>(path, index_rows(path), {0, 1}); });
  }
}

TEST(RowFile, WhatIsNoPlainFileIsRefusedBeforeItIsRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a.mtx");
  EXPECT_NE(message_of([&] { index_rows(folder / "a.mtx"); }).find("is a directory"),
            std::string::npos);
}

// The arrays of the archive declare a million million numbers, for which no memory is asked.
TEST(RowFile, AnNpzFileThatDeclaresMoreThanItHoldsIsRefused) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const TemporaryFolder folder;
  const std::string other = write_npz(sparse::random_pattern(4, 4, {1, 1}, 0.5, 1));
  static constexpr std::int64_t kMany = 1'000'000'000'000;
  const auto declares_many = [](std::string array) {  // of one number; the padding gives way
    const std::string shape = fmt::format("({},)", kMany);
    array.replace(array.find("(1,)"), 4, shape);
    return array.erase(array.find("   "), shape.size() - 4);
  };
  const std::string path = folder.write(
      "a.npz",
      internal::pack({{"format.npy", internal::ZipArchive(other, "other").read("format.npy")},
                      {"shape.npy", write_npy(std::vector<std::int64_t>{1, 5})},
                      {"indptr.npy", write_npy(std::vector<std::int64_t>{0, kMany})},
                      {"indices.npy", declares_many(write_npy(std::vector<int>{1}))},
                      {"data.npy", declares_many(write_npy(std::vector<double>{1}))}}));
  EXPECT_NE(message_of([&] {
              read_rows<float>(path, index_rows(path), {0, 1});
            }).find("more than the 1 elements"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::io
