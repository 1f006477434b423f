#include "tessera/base/printable.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Printable, KeepsLettersOfAllLanguagesAndBackslashes) {
  for (const char* text : {"", "weights.mtx", "C:\\x", "Größe", "重み.npy", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesControlCharactersOfAsciiAndOfUnicode) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string_view("a\0\x7f", 3)), "a\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "one character that begins a sequence";
}

TEST(Printable, EscapesMarksThatReverseTheWriting) {
  EXPECT_EQ(printable("a\xe2\x80\xaegnp.exe"), "a\\xe2\\x80\\xaegnp.exe");
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  for (const char* text : {"\x80", "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_EQ(printable(text).find_first_not_of("\\xabcdef0123456789"), std::string::npos) << text;
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
}

TEST(Printable, KeepsLineEndsAndTabsOnlyIfAsked) {
  EXPECT_EQ(printable("a\n\tb\r"), "a\\x0a\\x09b\\x0d");
  EXPECT_EQ(printable("a\n\tb\r", LineEnds::Keep), "a\n\tb\\x0d");
}

TEST(RangeOfIndices, IsNotWrittenBackwards) {
  EXPECT_EQ(range_of_indices(5), "0..4");
  EXPECT_EQ(range_of_indices(1), "0..0");
  EXPECT_EQ(range_of_indices(0), "an empty range, because there are none");
}

}  // namespace
}  // namespace tessera
