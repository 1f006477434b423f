#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/base/error.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"
#include "tessera/tests/support/shared_data.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::raises;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// One line of index.csv, whose first columns hold no commas:
// file,bytes,rows,cols,nnz,density,row_max,row_cv,col_max,col_cv,empty_rows,empty_cols,...
struct Indexed {
  std::string file;
  std::int64_t rows, cols, blocks, row_max, col_max, empty_rows, empty_cols;
};

std::vector<Indexed> read_index(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Indexed> files;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::vector<std::string> cell(12);
    for (std::string& c : cell) std::getline(cells, c, ',');
    if (cell[2].empty()) continue;  // an archive
    const auto number = [&cell](std::size_t i) { return std::stoll(cell[i]); };
    files.push_back(
        {cell[0], number(2), number(3), number(4), number(6), number(8), number(10), number(11)});
  }
  return files;
}

std::int64_t largest(const std::vector<std::int32_t>& counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

void expect_as_indexed(const std::filesystem::path& folder, const Indexed& f, bool has_values) {
  SCOPED_TRACE(f.file);
  const ReadMatrix read = read_matrix(folder / f.file);
  check(read.matrix);
  EXPECT_EQ(read.matrix.rows, f.rows);
  EXPECT_EQ(read.matrix.cols, f.cols);
  EXPECT_EQ(read.matrix.blocks(), f.blocks);
  const PatternStats stats = pattern_stats(read.matrix);
  EXPECT_EQ(largest(stats.row_counts), f.row_max);
  EXPECT_EQ(largest(stats.col_counts), f.col_max);
  EXPECT_EQ(std::count(stats.row_counts.begin(), stats.row_counts.end(), 0), f.empty_rows);
  EXPECT_EQ(std::count(stats.col_counts.begin(), stats.col_counts.end(), 0), f.empty_cols);
  EXPECT_EQ(read.has_values, has_values);
}

TEST(OwnData, EveryFileHoldsWhatItsIndexSays) {
  const std::filesystem::path folder = TESSERA_SOURCE_DIR "/tests/data/matrices";
  const auto files = read_index(folder / "index.csv");
  ASSERT_EQ(files.size(), 13u);
  for (const Indexed& f : files) {
    if (f.file.ends_with(".npz") && !can_read_npz()) continue;
    const bool is_pattern =
        f.file.ends_with(".smtx") || f.file.ends_with(".txt") || f.file == "columns_pattern.mtx";
    expect_as_indexed(folder, f, !is_pattern);
  }
}

TEST(OwnData, SymmetryIsThatOfTheBanner) {
  const std::filesystem::path folder = TESSERA_SOURCE_DIR "/tests/data/matrices";
  const sparse::Csr<double> grid = read_matrix(folder / "grid_symmetric.mtx").matrix;
  EXPECT_EQ(sparse::transpose(grid), grid);
  EXPECT_EQ(grid, read_matrix(folder / "grid_integer.mtx").matrix);
  const sparse::Csr<double> graph = read_matrix(folder / "graph_skew.mtx").matrix;
  sparse::Csr<double> turned = sparse::transpose(graph);
  for (double& value : turned.values) value = -value;
  EXPECT_EQ(turned, graph);
}

TEST(OwnData, OneMatrixIsTheSameInTwoFormats) {
  const std::filesystem::path folder = TESSERA_SOURCE_DIR "/tests/data/matrices";
  EXPECT_EQ(read_matrix(folder / "layer.smtx").matrix.col,
            read_matrix(folder / "layer.mtx").matrix.col);
  EXPECT_EQ(read_matrix(folder / "columns_pattern.mtx").matrix.col,
            read_matrix(folder / "layer.npy").matrix.col);
  EXPECT_EQ(read_matrix(folder / "blocks.mtx").matrix.col,
            read_matrix(folder / "cells.safetensors").matrix.col);
}

TEST(SharedData, EveryFileHoldsWhatItsIndexSays) {
  TESSERA_NEED_SHARED(shared);
  const auto files = read_index(shared / "data" / "index.csv");
  ASSERT_EQ(files.size(), 37u);
  for (const Indexed& f : files) {
    if (f.file == "mtx/young1c.mtx") continue;  // complex: see below
    expect_as_indexed(shared / "data", f,
                      f.file.ends_with(".mtx") && f.file != "mtx/ash219.mtx" &&
                          f.file != "mtx/Ragusa16_pattern.mtx");
  }
}

TEST(SharedData, AComplexMatrixIsRefused) {
  TESSERA_NEED_SHARED(shared);
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"young1c.mtx:1:", "complex"},
                     [&] { read_matrix(shared / "data/mtx/young1c.mtx"); }));
}

TEST(SharedData, SymmetricMatricesAreSymmetric) {
  TESSERA_NEED_SHARED(shared);
  for (const char* file : {"LFAT5.mtx", "bcsstk13.mtx", "tumorAntiAngiogenesis_2.mtx"}) {
    const sparse::Csr<double> m = read_matrix(shared / "data" / "mtx" / file).matrix;
    EXPECT_EQ(sparse::transpose(m), m) << file;
  }
}

class ReadMatrixFile : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(ReadMatrixFile, ChoosesTheFormatByTheEndingOfTheName) {
  const sparse::Csr<double> expected{1, 2, {1, 1}, {0, 1}, {1}, {1}};
  EXPECT_EQ(read_matrix(write("a.smtx", "1 2 1\n0 1\n1\n")).matrix, expected);
  EXPECT_EQ(read_matrix(write("a.txt", "1 2 0 1\n")).matrix, expected);
  EXPECT_EQ(read_matrix(write("a.MTX",
                              "%%MatrixMarket matrix coordinate pattern general\n"
                              "1 2 1\n1 2\n"))
                .matrix,
            expected);
}

TEST_F(ReadMatrixFile, RefusesWhatIsNoFileOfAKnownKind) {
  constexpr auto kBad = ErrorCode::BadInput;
  EXPECT_TRUE(
      raises(kBad, {"a.h5", ".smtx", ".mtx", ".txt"}, [this] { read_matrix(write("a.h5", "x")); }));
  EXPECT_TRUE(
      raises(kBad, {"none.mtx", "no such file"}, [this] { read_matrix(folder_ / "none.mtx"); }));
  std::filesystem::create_directory(folder_ / "d.mtx");
  EXPECT_TRUE(raises(kBad, {"d.mtx", "directory"}, [this] { read_matrix(folder_ / "d.mtx"); }));
  EXPECT_TRUE(raises(kBad, {".smtx"}, [] { read_matrix(""); }));
  EXPECT_TRUE(raises(kBad, {"empty.mtx:1:"}, [this] { read_matrix(write("empty.mtx", "")); }));
}

// A file of four terabytes, which no computer could read as a whole, has only its start on disk.
TEST(ReadMatrix, RefusesABadFirstLineByOnePageOfTheFile) {
  const test::TemporaryFolder folder;
  for (const char* name : {"wrong.mtx", "wrong.smtx"}) {
    const std::string path = folder.write(name, "this is no matrix\n");
    std::error_code refused;
    std::filesystem::resize_file(path, std::uintmax_t{1} << 42, refused);
    if (refused) GTEST_SKIP() << "this file system has no sparse files of that size";
    EXPECT_THAT([&] { read_matrix(path); },
                ThrowsMessage<Error>(AllOf(HasSubstr(":1:"), HasSubstr("\"this\""))));
  }
}

}  // namespace
}  // namespace tessera::io
