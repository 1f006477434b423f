#include "tessera/io/npz.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tests/io/array_files.hpp"
#include "tessera/tests/io/npz_archives.hpp"

namespace tessera::io {
namespace {

using testing::HasSubstr;

template <std::size_t n>
std::string_view file(const unsigned char (&bytes)[n]) {
  return {reinterpret_cast<const char*>(bytes), n};
}

// [[1 0 2], [0 0 3]]
sparse::Csr<double> drawn() {
  return {.rows = 2, .cols = 3, .row_begin = {0, 2, 3}, .col = {0, 2, 2}, .values = {1, 2, 3}};
}

TEST(NpzArchive, ColumnsAndCoordinatesOfBothSpellingsAreTheSameMatrix) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  EXPECT_EQ(read_npz(file(archives::kCsc), "a"), drawn());
  EXPECT_EQ(read_npz(file(archives::kCoo), "a"), drawn());
  EXPECT_EQ(read_npz(file(archives::kCoords), "a"), drawn());
}

TEST(NpzArchive, EveryDefectNamesTheFileAndTheArray) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const auto fails = [](std::string_view bytes, const char* part,
                        ErrorCode code = ErrorCode::BadInput) {
    const std::string message = test::message_of([&] { read_npz(bytes, "a.npz"); }, code);
    EXPECT_THAT(message, testing::StartsWith("a.npz: "));
    EXPECT_THAT(message, HasSubstr(part));
  };
  fails("no archive at all", "is not a zip archive");
  fails(file(archives::kIndexTooLarge), "indices[2] is 7; it must be a whole number in 0..1");
  fails(file(archives::kPointerFalls), "indptr falls from 2 to 1");
  fails(file(archives::kObjects), "never loaded");
  fails(file(archives::kDia), "must be csr, csc, bsr or coo");
  fails(file(archives::kHugeShape), "shape[0]", ErrorCode::LimitExceeded);
  fails(file(archives::kTwice), "row 0");
}

}  // namespace
}  // namespace tessera::io
