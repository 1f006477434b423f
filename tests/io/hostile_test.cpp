// Files that ask for more memory than they pay for, or that have another type than the reader
// expects.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/zip.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/tests/io/array_files.hpp"

namespace tessera::io {
namespace {

using test::dict;
using test::message_of;
using test::npy;
using testing::HasSubstr;

std::string text(const std::string& word) {
  return npy(dict("|S" + std::to_string(word.size()), "False", "()"), word);
}

// A coo archive of one entry in a matrix of 2 x 2, with these arrays in place of its own or added.
std::string coo(const internal::Members& changed) {
  internal::Members members = {
      {"format.npy", text("coo")},
      {"shape.npy", write_npy(std::vector<std::int64_t>{2, 2})},
      {"data.npy", write_npy(std::vector<double>{1.5})},
      {"coords.npy", npy(dict("|i1", "False", "(2, 1)"), test::bytes({1, 0}))}};
  for (const auto& [name, content] : changed) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (found == members.end())
      members.emplace_back(name, content);
    else
      found->second = content;
  }
  return internal::pack(members, internal::PackLevel::Smallest);
}

std::string refused(const internal::Members& changed, ErrorCode code = ErrorCode::BadInput) {
  return message_of([&] { read_npz(coo(changed), "a.npz"); }, code);
}

class HostileNpz : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  }
};

TEST_F(HostileNpz, RefusesTextInEveryArrayOfNumbers) {
  EXPECT_EQ(read_npz(coo({}), "a").col, (std::vector<std::int32_t>{0}));
  EXPECT_THAT(refused({{"coords.npy", npy(dict("|S1", "False", "(2, 1)"), "10")}}),
              HasSubstr("a.npz: coords must be an array of numbers with 2 dimensions"));
  EXPECT_THAT(refused({{"data.npy", npy(dict("|S1", "False", "(1,)"), "1")}}),
              HasSubstr("data must be an array of numbers"));
  EXPECT_THAT(refused({{"shape.npy", npy(dict("|S1", "False", "(2,)"), "22")}}),
              HasSubstr("shape must be an array of numbers"));
  EXPECT_THAT(refused({{"format.npy", text("bsr")},
                       {"data.npy", npy(dict("|S1", "False", "(1, 1, 1)"), "1")}}),
              HasSubstr("data must be an array of numbers with 3 dimensions"));
  EXPECT_THAT(refused({{"format.npy", npy(dict("|i1", "False", "()"), "c")}}),
              HasSubstr("format is \"\""));
}

TEST_F(HostileNpz, LeavesFilesThatItDoesNotNeedPacked) {
  EXPECT_EQ(read_npz(coo({{"picture.npy", "no array"}, {"row.npy", "none either"}}), "a").values,
            (std::vector<double>{1.5}));
}

TEST_F(HostileNpz, RefusesArchivesThatUnpackToMoreThanTheirBytesPayFor) {
  constexpr int kBytes = 17 << 20;  // 16 MiB are always allowed
  const std::string zeros =
      npy(dict("|u1", "False", "(" + std::to_string(kBytes) + ",)"), std::string(kBytes, '\0'));
  EXPECT_THAT(refused({{"data.npy", zeros}}, ErrorCode::LimitExceeded),
              HasSubstr("256 times the bytes of the archive"));
}

TEST_F(HostileNpz, CountsAllArraysTowardsTheLimit) {
  constexpr int kBytes = 6 << 20;
  const std::string zeros =
      npy(dict("|u1", "False", "(" + std::to_string(kBytes) + ",)"), std::string(kBytes, '\0'));
  const std::string three = internal::pack({{"format.npy", text("csr")},
                                            {"shape.npy", zeros},
                                            {"data.npy", zeros},
                                            {"indices.npy", zeros},
                                            {"indptr.npy", zeros}},
                                           internal::PackLevel::Smallest);
  EXPECT_THAT(message_of([&] { read_npz(three, "a.npz"); }, ErrorCode::LimitExceeded),
              HasSubstr("a.npz: the archive unpacks to more than"));
}

TEST_F(HostileNpz, RefusesMoreRowsThanTheFileCanPayFor) {
  for (const std::int64_t rows : {std::int64_t{(1 << 20) + 1}, std::int64_t{1} << 50})
    EXPECT_THAT(refused({{"shape.npy", write_npy(std::vector<std::int64_t>{rows, 2})}},
                        ErrorCode::LimitExceeded),
                HasSubstr("it must be a whole number in 0..1048576"));
  EXPECT_THAT(refused({{"shape.npy", write_npy(std::vector<std::int64_t>{-1, 2})}}),
              HasSubstr("shape[0] is -1"));
}

TEST_F(HostileNpz, RefusesBlocksWhoseAreaDoesNotFitANumber) {
  const std::string none = write_npy(std::vector<std::int32_t>{});
  EXPECT_THAT(refused({{"format.npy", text("bsr")},
                       {"shape.npy", write_npy(std::vector<std::int64_t>{0, 0})},
                       {"data.npy", npy(dict("<f4", "False", "(0, 4611686018427387904, 4)"), "")},
                       {"indices.npy", none},
                       {"indptr.npy", write_npy(std::vector<std::int32_t>{0})}}),
              HasSubstr("a.npz: "));
}

TEST(HostileNpy, RefusesSidesWithoutElementsThatNeedMemory) {
  const auto read = [](const std::string& shape) {
    return to_csr(read_npy(npy(dict("<f4", "False", shape), ""), "a.npy"), "a.npy");
  };
  EXPECT_THAT(message_of([&] { read("(2147483647, 0)"); }, ErrorCode::LimitExceeded),
              HasSubstr("a.npy: 2147483647 x 0 without elements; at most 1048576 rows"));
  EXPECT_THAT(message_of([&] { read("(0, 1048577)"); }, ErrorCode::LimitExceeded),
              HasSubstr("0 x 1048577"));
  EXPECT_EQ(read("(1048576, 0)").row_begin.size(), 1048577u);
}

TEST(HostileNpy, RefusesManyTextsAndLettersThatAreNotAscii) {
  const auto read = [](const std::string& descr, const std::string& shape,
                       const std::string& data) {
    return read_npy(npy(dict(descr, "False", shape), data), "a.npy");
  };
  EXPECT_THAT(message_of([&] { read("|S1", "(1025,)", std::string(1025, 'a')); }),
              HasSubstr("1025 elements of text; at most 1024 are read"));
  EXPECT_EQ(read("|S1", "(1024,)", std::string(1024, 'a')).text.size(), 1024u);
  EXPECT_EQ(read("<U2", "()", test::bytes({'c', 0, 0, 0, 'o', 0, 0, 0})).text.at(0), "co");
  EXPECT_EQ(read(">U2", "()", test::bytes({0, 0, 0, 'c', 0, 0, 0, 0})).text.at(0), "c");
  EXPECT_THAT(message_of([&] { read("<U1", "()", test::bytes({'c', 1, 0, 0})); }),
              HasSubstr("a.npy: byte 128: letter U+0163 is not ASCII"));
}

TEST(HostileSafetensors, RefusesSidesWithoutElementsThatNeedMemory) {
  const std::string file =
      test::safetensors(R"({"w":{"dtype":"F32","shape":[2147483647,0],"data_offsets":[0,0]}})", "");
  EXPECT_THAT(
      message_of([&] { to_csr(read_safetensors(file, "a", ""), "a"); }, ErrorCode::LimitExceeded),
      HasSubstr("2147483647 x 0 without elements"));
}

TEST(HostileSafetensors, RefusesNumbersBeyondTheRangeOfADouble) {
  const auto message = message_of([] {
    list_safetensors(test::safetensors(R"({"__metadata__":{"x":1e999}})", ""), "a.safetensors");
  });
  EXPECT_THAT(message, HasSubstr("a.safetensors: "));
  EXPECT_THAT(message, testing::Not(HasSubstr("json.exception")));
}

}  // namespace
}  // namespace tessera::io
