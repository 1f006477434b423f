#include "tessera/base/append_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/limited_files.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(AppendFile, CreatesAFileAndAddsToItsEnd) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "results";
  append_file(path, "one\n");
  append_file(path, "two\n");
  EXPECT_EQ(read_file(path), "one\ntwo\n");
}

TEST(AppendFile, LeavesNoPartOfALineIfTheDiskIsFull) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("results", "one\n");
  EXPECT_TRUE(test::cannot_write_beyond(100, [&] { append_file(path, std::string(500, 'x')); }));
  EXPECT_EQ(read_file(path), "one\n");
}

TEST(AppendFile, SaysWhyItCannotWrite) {
  const test::TemporaryFolder folder;
  const std::string lost = folder / "lost/results";
  EXPECT_THAT([&] { append_file(lost, "x"); },
              ThrowsMessage<CannotWrite>(HasSubstr(lost + ": cannot be opened: No such file")));
  EXPECT_THAT([] { append_file("/dev/full", "x"); },
              ThrowsMessage<CannotWrite>("/dev/full: cannot be written: No space left on device"));
}

TEST(AppendFile, KeepsLinesWholeThatSeveralWritersAppend) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "results";
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&path, writer] {
      for (int i = 0; i < 25; ++i) append_file(path, std::string(3000, char('a' + writer)) + "\n");
    });
  for (std::thread& writer : writers) writer.join();
  const std::string text = read_file(path);
  ASSERT_EQ(text.size(), 100 * 3001u);
  for (std::size_t at = 0; at < text.size(); at += 3001)
    EXPECT_EQ(text.substr(at, 3001), std::string(3000, text[at]) + "\n");
}

}  // namespace
}  // namespace tessera
