#include "tessera/io/archive.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/tests/support/archives.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using tessera::test::message_of;
using tessera::test::saved_file;
using tessera::test::sealed;
using tessera::test::state_of;
using tessera::test::with_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Part {
  std::vector<std::int32_t> places;
  friend bool operator==(const Part&, const Part&) = default;
};

// A state with a field and a list of every kind.
struct Everything {
  bool flag = true;
  std::int64_t whole = -3;
  double number = 0.1;
  std::string text = "a \"text\"\n";
  std::vector<float> floats{1.5f, -0.0f};
  std::vector<double> table{1, 2, 3, 4, 5, 6};
  std::vector<std::int64_t> longs{std::numeric_limits<std::int64_t>::min()};
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint16_t> words{7, 65535};
  std::vector<std::uint32_t> wide_words{8};
  std::vector<Half> halves{Half(1.5f)};
  std::vector<BFloat16> bfloats{BFloat16(-2.0f)};
  std::vector<Part> parts{{{1, 2}}, {{}}};
  friend bool operator==(const Everything&, const Everything&) = default;
};

void describe(Archive& archive, Everything& s) {
  archive.flag("flag", s.flag);
  archive.whole("whole", s.whole, {-3, 9});
  archive.number("number", s.number);
  archive.text("text", s.text);
  archive.within("lists", [&] {
    archive.list("floats", s.floats, {2});
    archive.list("table", s.table, {Archive::kAnyCount, 3});
    archive.list("longs", s.longs);
    archive.list("bytes", s.bytes);
    archive.list("words", s.words);
    archive.list("wide_words", s.wide_words);
    archive.list("halves", s.halves, {1});
    archive.list("bfloats", s.bfloats);
  });
  archive.items("part", s.parts, {0, 9}, [&](Part& part) { archive.list("places", part.places); });
}

std::string refused(const std::string& file) {
  return message_of([&] { state_of<Everything>(file, "a.safetensors"); });
}

TEST(Archive, GivesBackWhatWasDescribed) {
  const Everything state;
  const std::string file = saved_file(state);
  EXPECT_EQ(state_of<Everything>(file, "a"), state);
  EXPECT_EQ(saved_file(state_of<Everything>(file, "a")), file);
  Everything other;
  other.flag = false;
  other.number = 1e300;
  other.text = "";
  other.table = {};
  other.parts = {};
  EXPECT_EQ(state_of<Everything>(saved_file(other), "a"), other);
}

TEST(Archive, IsASafetensorsFile) {
  const std::string file = saved_file(Everything());
  const Array table = read_safetensors(file, "a", "lists.table");
  EXPECT_EQ(table.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(table.values, Everything().table);
  EXPECT_EQ(read_safetensors(file, "a", "part1.places").values, (std::vector<double>{1, 2}));
}

TEST(Archive, IsRefusedWhereItIsCutOrABitHasChanged) {
  const std::string file = saved_file(Everything());
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_THAT(refused(file.substr(0, length)), StartsWith("a.safetensors: ")) << length;
  for (std::size_t byte = 0; byte < file.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[byte] = char(changed[byte] ^ (1 << bit));
      EXPECT_THAT(refused(changed), StartsWith("a.safetensors: ")) << byte << ", bit " << bit;
    }
  EXPECT_THAT(refused(file + "x"), HasSubstr("the checksum is wrong"));
}

TEST(Archive, OfAnotherFormVersionOrKindIsRefused) {
  const std::string file = saved_file(Everything());
  EXPECT_THAT(refused("%%MatrixMarket matrix"), HasSubstr("byte 8: this is no state"));
  EXPECT_THAT(refused(write_safetensors({}, {{"format", "pt"}})), HasSubstr("this is no state"));
  EXPECT_THAT(refused(with_text(file, R"("tessera_archive":"1")", R"("tessera_archive":"2")")),
              HasSubstr("the form of version \"2\", and this program reads version 1"));
  EXPECT_THAT(refused(saved_file(Everything(), "a training run")),
              HasSubstr("this is \"a training run\" that was saved; \"a state\" is needed here"));
}

// Heads that contradict their lists, and lists that are not what they should be, under a right
// checksum.
TEST(Archive, WithAHeadThatLiesIsRefusedWithThePlace) {
  const std::string file = saved_file(Everything());
  const auto lie = [&](const char* old, const char* now) {
    const std::string changed = with_text(file, old, now);
    EXPECT_NE(changed, "") << old;
    return refused(changed);
  };
  EXPECT_THAT(lie(R"(\"whole\":-3)", R"(\"whole\":-4)"),
              HasSubstr("field whole is -4; it must be a whole number in -3..9"));
  EXPECT_THAT(lie(R"(\"whole\":-3)", R"(\"whole\":.3)"), HasSubstr("head: not JSON"));
  EXPECT_THAT(lie(R"(\"flag\":true)", R"(\"flag\":null)"),
              HasSubstr("field flag is null; it must be true or false"));
  EXPECT_THAT(lie(R"(\"number\":0.1)", R"(\"number\":NaN)"), HasSubstr("head: not JSON"));
  EXPECT_THAT(lie(R"(\"number\":0.1)", R"(\"number\":"1")"), HasSubstr("header: not JSON"));
  EXPECT_THAT(lie(R"(\"flag\")", R"(\"flug\")"), HasSubstr("field flag is missing"));
  EXPECT_THAT(lie(R"(\"parts\":2)", R"(\"parts\":3)"), HasSubstr("list part3.places is missing"));
  EXPECT_THAT(lie(R"(\"parts\":2)", R"(\"parts\":1)"),
              HasSubstr("list \"part2.places\" is not known"));
  EXPECT_THAT(lie(R"("kind":"a state")", R"("kind":"a stare")"), HasSubstr("this is \"a stare\""));
  EXPECT_THAT(lie(R"("lists.floats":{"dtype":"F32")", R"("lists.floats":{"dtype":"I32")"),
              HasSubstr("list lists.floats has the type I32 and the shape [2]; it must have F32"));
  EXPECT_THAT(lie(R"("dtype":"F64","shape":[2,3])", R"("dtype":"F64","shape":[3,2])"),
              HasSubstr("lists.table has the type F64 and the shape [3][2]; it must have F64 and "
                        "[any][3]"));
  EXPECT_THAT(lie(R"("dtype":"F64","shape":[2,3])", R"("dtype":"F64","shape":[2,9])"),
              HasSubstr("elements"));
}

TEST(Archive, WithUnknownFieldsIsRefused) {
  Everything state;
  Archive archive("a state");
  std::int64_t more = 1;
  archive.whole("more", more, {0, 1});
  describe(archive, state);
  EXPECT_THAT(refused(archive.bytes()), HasSubstr("field \"more\" is not known"));
}

// Every type that has such numbers, at the index of the list.
TEST(Archive, WithNumbersThatAreNotFiniteIsRefused) {
  const auto refusal_of = [](auto bad) {
    std::vector numbers{decltype(bad)(1), decltype(bad)(1)};
    Archive archive("a state");
    archive.list("v", numbers);
    std::string file = archive.bytes();
    std::memcpy(file.data() + file.size() - sizeof(bad), &bad, sizeof(bad));
    const std::string changed = sealed(file);
    return message_of([&] { Archive::of_bytes(changed, "a", "a state")->list("v", numbers); });
  };
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    const std::string message = "a: number 1 of list v is not finite";
    EXPECT_EQ(refusal_of(bad), message);
    EXPECT_EQ(refusal_of(float(bad)), message);
    EXPECT_EQ(refusal_of(Half(float(bad))), message);
    EXPECT_EQ(refusal_of(BFloat16(float(bad))), message);
  }
}

TEST(Archive, RefusesToSaveNumbersThatItWouldNotRead) {
  const auto refusal_of = [](auto bad) {
    std::vector numbers{decltype(bad)(1), bad};
    Archive archive("a state");
    return message_of([&] { archive.list("v", numbers); }, ErrorCode::InvalidArgument);
  };
  for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const std::string message = "saving a state: number 1 of list v is not finite";
    EXPECT_EQ(refusal_of(bad), message);
    EXPECT_EQ(refusal_of(float(bad)), message);
    EXPECT_EQ(refusal_of(Half(float(bad))), message);
    EXPECT_EQ(refusal_of(BFloat16(float(bad))), message);
    Archive archive("a state");
    EXPECT_EQ(message_of([&] { archive.number("n", bad); }, ErrorCode::InvalidArgument),
              "saving a state: field n is not finite");
  }
}

TEST(Archive, RefusesToSaveATableWithoutAWholeNumberOfRows) {
  std::vector<float> numbers(5);
  for (const std::int64_t columns : {3, 0, -1}) {
    Archive archive("a state");
    EXPECT_THAT(message_of([&] { archive.list("v", numbers, {Archive::kAnyCount, columns}); },
                           ErrorCode::InvalidArgument),
                HasSubstr("saving a state: list v has 5 numbers; it must have the shape [any]["))
        << columns;
  }
}

TEST(Archive, RefusesAStateThatContradictsItself) {
  const auto refusal = [](const auto& change) {
    Everything state;
    change(state);
    return message_of([&] { saved_file(state); }, ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal([](Everything& s) { s.whole = 10; }),
              HasSubstr("saving a state: field whole is 10; it must be a whole number in -3..9"));
  EXPECT_THAT(refusal([](Everything& s) { s.floats.pop_back(); }),
              HasSubstr("list lists.floats has the type F32 and the shape [1]"));
  EXPECT_THAT(refusal([](Everything& s) { s.table.pop_back(); }), HasSubstr("lists.table"));
}

TEST(Archive, IsReadFromAFileInParts) {
  const tessera::test::TemporaryFolder folder;
  Archive archive("a state");
  std::vector<float> numbers(1'000'000);  // more than one piece of a file
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
  archive.list("numbers", numbers);
  const std::string bytes = archive.bytes();
  const std::string path = folder.write("a.safetensors", bytes);
  const auto file = Archive::open(path, "a state");
  EXPECT_EQ(file->checksum(), archive.checksum());
  std::vector<float> part{-1};
  file->append_part("numbers", {300'000, 900'000}, 1'000'000, part);
  ASSERT_EQ(part.size(), 600'001u);
  EXPECT_EQ(part.front(), -1);
  EXPECT_EQ(part.back(), 899'999);
  std::vector<float> whole;
  file->list("numbers", whole);
  EXPECT_EQ(whole, numbers);
  file->finish();
  EXPECT_THAT(message_of([&] { file->append_part("numbers", {0, 2}, 3, part); }),
              HasSubstr("shape [1000000]"));
  EXPECT_THAT(message_of([&] { file->append_part("numbers", {-1, 2}, 1'000'000, part); }),
              HasSubstr("no numbers -1 to 2"));
  EXPECT_THAT(message_of([&] { Archive::open(folder / "none", "a state"); }), HasSubstr("none"));
  std::string changed = bytes;
  changed.back() = char(changed.back() ^ 1);
  folder.write("a.safetensors", changed);
  EXPECT_THAT(message_of([&] { Archive::open(path, "a state"); }), HasSubstr("the checksum"));
  EXPECT_NO_THROW(Archive::open(path, "a state", Archive::Checksum::Skip));
}

}  // namespace
}  // namespace tessera::io
