// Each rank reads its rows of a file.

#include "tessera/distributed/files.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::distributed {
namespace {

TEST(ReadOwnRows, GivesEachRankItsRowsInBlocks) {
  const test::TemporaryFolder folder;
  const auto matrix = sparse::random_pattern(50, 30, {1, 1}, 0.2, 1);
  for (const std::string& path : {folder.write("a.mtx", io::write_mtx(matrix)),
                                  folder.write("a.smtx", io::write_smtx(matrix))}) {
    sparse::Csr<float> whole = matrix;
    if (path.ends_with("smtx")) whole.values.assign(whole.values.size(), 1.0f);
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
      for (const int count : {1, 3, 20})
        run_ranks(count, [&](Communicator& ranks) {
          const auto blocks = sparse::with_block(
              sparse::with_shape(whole, block.rows == 1 ? 50 : 52, block.cols == 1 ? 30 : 32),
              block);
          const FileRows<float> own = read_own_rows(ranks, path, block.rows);
          EXPECT_EQ(sparse::in_whole_blocks(own.rows, block),
                    rows_of(blocks, own.outputs.of(ranks.rank())));
          EXPECT_EQ(own.outputs.rows(), 50);
          EXPECT_EQ(own.cols, 30);
        });
  }
}

TEST(ReadOwnRows, TakesWholeNumbersAloneFromAFileOfIntegers) {
  const test::TemporaryFolder folder;
  const std::string size = "4 2 4\n", rows = "1 1 3\n2 2 4\n3 1 5\n4 2 ";
  const std::string head = "%%MatrixMarket matrix coordinate ";
  const auto read = [&](const std::string& text) {
    const std::string path = folder.write("a.mtx", text);
    run_ranks(2, [&](Communicator& ranks) {
      const FileRows<float> own = read_own_rows(ranks, path);
      EXPECT_EQ(own.rows.values.back(), ranks.rank() == 0 ? 4 : 6.5f);
    });
  };
  read(head + "real general\n" + size + rows + "6.5\n");
  const std::string message =
      test::message_of([&] { read(head + "integer general\n" + size + rows + "6.5\n"); });
  EXPECT_NE(message.find("rank 1 of 2: "), message.npos) << message;
}

TEST(ReadOwnRows, AFaultInTheRowsOfOneRankEndsAll) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a.smtx", "2 5 4\n0 2 4\n1 3 4 4\n");
  const std::string message = test::message_of([&] {
    run_ranks(2, [&](Communicator& ranks) {
      read_own_rows(ranks, path);
      ranks.barrier("weights are read");
    });
  });
  EXPECT_NE(message.find("rank 1 of 2: "), message.npos) << message;
  EXPECT_NE(message.find("a.smtx: byte 18"), message.npos) << message;
}

}  // namespace
}  // namespace tessera::distributed
