// Large .mtx files, which are read in pieces, and their conversion to .smtx in passes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/random.hpp"
#include "tessera/io/internal/smtx_in_passes.hpp"
#include "tessera/io/internal/text_source.hpp"
#include "tessera/io/mtx_pattern.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::io {
namespace {

using test::message_of;
using test::TemporaryFolder;

// A text that is longer than a few pieces of half a megabyte.
struct LongText {
  std::string text;
  sparse::Csr<double> matrix;
};

enum class Order { ByRow, Shuffled };

std::string entry_line(std::int64_t row, std::int64_t col, double value) {
  return std::to_string(row + 1) + ' ' + std::to_string(col + 1) + ' ' + std::to_string(value) +
         '\n';
}

LongText long_text(Order order, bool is_symmetric = false) {
  auto matrix = sparse::cast<double>(sparse::random_pattern(600, 600, {1, 1}, 0.3, 7));
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = double(i % 977) + 0.25;
  sparse::Coo<double> coo = sparse::to_coo(matrix);
  std::vector<std::size_t> at(coo.row.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  if (order == Order::Shuffled) {
    Random random(3);
    for (std::size_t i = at.size(); i > 1; --i)
      std::swap(at[i - 1], at[static_cast<std::size_t>(random.below(std::int64_t(i)))]);
  }
  sparse::Coo<double> all{600, 600};
  std::string lines;
  std::int64_t entries = 0;
  for (const std::size_t i : at) {
    if (is_symmetric && coo.col[i] > coo.row[i]) continue;
    lines += entry_line(coo.row[i], coo.col[i], coo.values[i]);
    ++entries;
    all.row.push_back(coo.row[i]), all.col.push_back(coo.col[i]);
    all.values.push_back(coo.values[i]);
    if (!is_symmetric || coo.row[i] == coo.col[i]) continue;
    all.row.push_back(coo.col[i]), all.col.push_back(coo.row[i]);
    all.values.push_back(coo.values[i]);
  }
  return {std::string("%%MatrixMarket matrix coordinate real ") +
              (is_symmetric ? "symmetric" : "general") + "\n% a remark\n600 600 " +
              std::to_string(entries) + "\n" + lines,
          sparse::to_csr(all)};
}

TEST(MtxPieces, GiveTheMatrixInEveryOrder) {
  const TemporaryFolder folder;
  for (const bool is_symmetric : {false, true})
    for (const Order order : {Order::ByRow, Order::Shuffled}) {
      const LongText given = long_text(order, is_symmetric);
      ASSERT_GT(given.text.size(), std::size_t{1'000'000}) << "more than one piece";
      EXPECT_EQ(read_mtx(given.text, "a").matrix, given.matrix);
      EXPECT_EQ(read_matrix(folder.write("a.mtx", given.text)).matrix, given.matrix);
    }
}

// Pieces of every length must cut a text into the same lines.
TEST(MtxPieces, EveryLineIsInExactlyOnePiece) {
  const std::string text = "head\none\n\n\nfour 4\nfive\r\na longer line, the sixth\n\nlast";
  const internal::TextInMemory source(text);
  for (const std::size_t first : {std::size_t{0}, std::size_t{5}})
    for (std::int64_t length = 1; length < 60; ++length) {
      std::string joined, buffer;
      const auto end = static_cast<std::int64_t>(text.size());
      for (auto at = static_cast<std::int64_t>(first); at < end; at += length)
        joined += internal::lines_between(source, static_cast<std::int64_t>(first), at,
                                          std::min(at + length, end), buffer);
      EXPECT_EQ(joined, text.substr(first)) << length;
    }
}

TEST(MtxPieces, NameTheLineOfAFaultInALaterPiece) {
  const LongText given = long_text(Order::Shuffled);
  const std::size_t near_end = given.text.rfind('\n', given.text.size() - 200) + 1;
  const auto line =
      std::count(given.text.begin(), given.text.begin() + std::int64_t(near_end), '\n');
  std::string text = given.text;
  text.replace(near_end, 1, "x");
  EXPECT_EQ(message_of([&] { read_mtx(text, "a.mtx"); }).find("a.mtx:" + std::to_string(line + 1)),
            0u);
  text = given.text + "% a remark\n\n1 1 1\n";
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(message_of([&] {
              read_mtx(text, "a.mtx");
            }).find("a.mtx:" + std::to_string(lines) + ": more text after the last of"),
            0u);
  text = given.text.substr(0, near_end) + std::string(given.text.size() - near_end, '\n');
  const auto end = std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(message_of([&] {
              read_mtx(text, "a.mtx");
            }).find("a.mtx:" + std::to_string(end) + ": the file ends after"),
            0u);
}

TEST(MtxPieces, NameBothLinesOfAPlaceThatIsGivenTwice) {
  const LongText given = long_text(Order::ByRow);
  const std::size_t begin = given.text.find('\n', given.text.find("600 600")) + 1;
  const std::string first = given.text.substr(begin, given.text.find('\n', begin) + 1 - begin);
  // The last entry becomes the first once more, in a line of the same length or longer.
  const std::size_t last = given.text.rfind('\n', given.text.size() - 2) + 1;
  const std::string text = given.text.substr(0, last) + first;
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const std::string message = message_of([&] { read_mtx(text, "a.mtx"); });
  EXPECT_EQ(message.find("a.mtx:" + std::to_string(lines) + ": row 1, column "), 0u) << message;
  EXPECT_NE(message.find("is given twice, first on line 4;"), std::string::npos) << message;
}

TEST(MtxPieces, WithoutTheOrderAPatternIsTheSame) {
  const std::string text =
      "%%MatrixMarket matrix coordinate pattern general\n2 2 3\n2 1\n1 2\n1 1\n";
  const ReadMatrix kept = read_mtx(text, "a"),
                   dropped = read_mtx(text, "a", {.keeps_order = false});
  EXPECT_EQ(kept.entry_of_value, (std::vector<std::int64_t>{2, 1, 0}));
  EXPECT_TRUE(dropped.entry_of_value.empty());
  EXPECT_EQ(kept.matrix, dropped.matrix);
}

std::string in_passes(const std::string& text, std::int64_t most_columns,
                      sparse::Duplicates duplicates = sparse::Duplicates::Refuse) {
  const TemporaryFolder folder;
  const internal::TextInMemory source(text);
  internal::MtxEntries entries(source, "a.mtx");
  const std::string path = (folder.path() / "a.smtx").string();
  internal::write_smtx_in_passes(entries, duplicates, most_columns, path);
  return read_file(path);
}

TEST(SmtxInPasses, HasTheTextOfTheMatrixForEveryNumberOfPasses) {
  for (const bool is_symmetric : {false, true})
    for (const Order order : {Order::ByRow, Order::Shuffled}) {
      const LongText given = long_text(order, is_symmetric);
      const std::string expected = write_smtx(given.matrix);
      // A hundred and eighty passes take a minute with a sanitizer.
      for (const std::int64_t most : {test::kIsSanitized ? 12'000 : 600, 40'000, 1'000'000})
        EXPECT_EQ(in_passes(given.text, most), expected) << most;
    }
}

TEST(SmtxInPasses, ReadsArraysEmptyRowsAndEmptyMatrices) {
  const std::string banner = "%%MatrixMarket matrix ";
  for (const std::string text :
       {"array real general\n2 3\n1\n0\n2\n3\n-0\n4\n", "coordinate real general\n3 2 0\n",
        "coordinate pattern symmetric\n4 4 2\n1 1\n4 2\n", "array real skew-symmetric\n2 2\n5\n"})
    EXPECT_EQ(in_passes(banner + text, 2), write_smtx(read_mtx(banner + text, "a").matrix)) << text;
}

TEST(SmtxInPasses, SumsAndRefusesDuplicatesInEveryPass) {
  const std::string text =
      "%%MatrixMarket matrix coordinate real general\n"
      "3 3 5\n3 1 1\n1 2 1\n3 1 1\n1 1 1\n3 3 1\n";
  for (const std::int64_t most : {3, 100}) {
    EXPECT_EQ(in_passes(text, most, sparse::Duplicates::Sum), "3, 3, 4\n0 2 2 4\n0 1 0 2\n");
    EXPECT_EQ(message_of([&] {
                in_passes(text, most);
              }).find("a.mtx:5: row 3, column 1 is given twice, first on line 3;"),
              0u);
  }
}

TEST(SmtxInPasses, RefusesARowThatDoesNotFit) {
  EXPECT_EQ(message_of(
                [] {
                  in_passes(
                      "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n2 1\n2 3\n2 2\n",
                      2);
                },
                ErrorCode::InvalidArgument)
                .find("a.mtx: row 2 has 3 entries; the memory that is allowed holds 2"),
            0u);
}

TEST(SmtxInPasses, KeepsAnOldFileWhenALaterPassFails) {
  const TemporaryFolder folder;
  const std::string target = folder.write("a.smtx", "old");
  const internal::TextInMemory source(
      "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n3 1\n1 2\n1 1\n3 1\n");
  internal::MtxEntries entries(source, "a.mtx");
  EXPECT_THROW(internal::write_smtx_in_passes(entries, sparse::Duplicates::Refuse, 2, target),
               Error);
  EXPECT_EQ(read_file(target), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(MtxPattern, RefusesTooLittleMemory) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n1000000 3 0\n");
  const auto refused = [&](std::int64_t memory) {
    return message_of([&] { MtxPattern(path, {.memory = memory}); }, ErrorCode::InvalidArgument);
  };
  EXPECT_NE(refused(1).find("the least is 67108864"), std::string::npos);
  EXPECT_NE(refused(std::int64_t{64} << 20).find("its 1000000 rows need 67 MiB of memory"),
            std::string::npos)
      << refused(std::int64_t{64} << 20);
  const std::string target = (folder.path() / "a.smtx").string();
  EXPECT_EQ(MtxPattern(path).write_smtx(target), 0);
  EXPECT_EQ(read_matrix(target).matrix, read_matrix(path).matrix);
}

// The bytes that this process has read.
std::int64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::int64_t bytes = -1;
  file >> key >> bytes;
  return bytes;
}

TEST(BadFirstLine, ReadsAPageOfAFileOfAnyLength) {
  const std::int64_t first = bytes_read();
  if (first < 0) GTEST_SKIP() << "this system does not count bytes";
  const TemporaryFolder folder;
  for (const auto& [name, start] :
       {std::pair{"a.mtx", "%%MatrixMarket tensor coordinate real general\n"},
        {"b.mtx", "no line end"},
        {"c.smtx", "1, 2\n"}}) {
    const std::string path = folder.write(name, start);
    std::filesystem::resize_file(path, std::uintmax_t{1} << 33);  // a hole, which takes no disk
    const std::int64_t second = bytes_read(), before = bytes_read();
    const std::int64_t of_asking = before - second;
    EXPECT_THROW(read_matrix(path), Error);
    EXPECT_LE(bytes_read() - before - of_asking, 4096 + 16) << name;
  }
}

}  // namespace
}  // namespace tessera::io
