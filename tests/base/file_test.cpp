#include "tessera/base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::ptrdiff_t files_in(const test::TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(WriteFile, ReplacesTheWholeFileAndLeavesNoOther) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "figures";
  for (const ForceToDisk force : {ForceToDisk::Yes, ForceToDisk::No})
    for (const std::string& bytes : {std::string("long text\n"), std::string("\0\xff", 2)}) {
      write_file(path, bytes, force);
      EXPECT_EQ(read_file(path), bytes);
      EXPECT_EQ(files_in(folder), 1);
    }
}

TEST(WriteFile, NamesThePathAndTheReason) {
  const test::TemporaryFolder folder;
  const std::string lost = folder / "no folder/figures";
  EXPECT_THAT([&] { write_file(lost, "x"); },
              ThrowsMessage<Error>(AllOf(HasSubstr(lost + ": "), HasSubstr("No such file"))));
  const std::string taken = folder / "taken";
  std::filesystem::create_directory(taken);
  EXPECT_THAT([&] { write_file(taken, "x", ForceToDisk::No); },
              ThrowsMessage<Error>(HasSubstr(taken + ": cannot be put in place: ")));
  EXPECT_EQ(files_in(folder), 1);
}

TEST(ReadFile, RefusesWhatIsNoPlainFile) {
  const test::TemporaryFolder folder;
  EXPECT_THAT([&] { read_file(folder / "none"); },
              ThrowsMessage<Error>(HasSubstr("none: there is no such file")));
  EXPECT_THAT([&] { read_file(folder.path().string()); },
              ThrowsMessage<Error>(HasSubstr("is a directory")));
  EXPECT_THAT([] { read_file("/dev/null"); }, ThrowsMessage<Error>(HasSubstr("is not a plain")));
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
}

}  // namespace
}  // namespace tessera
