#include "tessera/base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/input_file.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ReadFile, RefusesWhatIsNoPlainFile) {
  const test::TemporaryFolder folder;
  EXPECT_THAT([&] { read_file(folder / "none"); },
              ThrowsMessage<Error>(HasSubstr("none: there is no such file")));
  EXPECT_THAT([&] { read_file(folder.path().string()); },
              ThrowsMessage<Error>(HasSubstr("is a directory")));
  EXPECT_THAT([] { read_file("/dev/null"); }, ThrowsMessage<Error>(HasSubstr("is not a plain")));
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
}

TEST(InputFile, ReadsTheBytesThatAreThere) {
  const test::TemporaryFolder folder;
  const InputFile file(folder.write("figures", "0123456789"));
  EXPECT_EQ(file.bytes(), 10);
  std::string text(6, '.');
  EXPECT_EQ(file.read(2, 3, text.data()), 3);
  EXPECT_EQ(text, "234...");
  EXPECT_EQ(file.read(8, 6, text.data()), 2);
  EXPECT_EQ(text, "894...");
  EXPECT_EQ(file.read(20, 6, text.data()), 0);
  EXPECT_THAT([&] { InputFile(folder / "none"); },
              ThrowsMessage<Error>(HasSubstr("none: there is no such file")));
}

TEST(ReadFile, EscapesControlCharactersOfNamesInItsMessages) {
  EXPECT_THAT([] { read_file("no\x1b[31m\nfile"); },
              ThrowsMessage<Error>(HasSubstr("no\\x1b[31m\\x0afile: there is no such file")));
}

}  // namespace
}  // namespace tessera
