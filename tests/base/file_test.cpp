#include "tessera/base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"
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

TEST(ReadFile, EscapesControlCharactersOfNamesInItsMessages) {
  EXPECT_THAT([] { read_file("no\x1b[31m\nfile"); },
              ThrowsMessage<Error>(HasSubstr("no\\x1b[31m\\x0afile: there is no such file")));
}

}  // namespace
}  // namespace tessera
