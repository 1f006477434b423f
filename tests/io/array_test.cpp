#include "tessera/io/array.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/io/array_files.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::bytes;
using test::dict;
using test::message_of;
using test::npy;
using test::safetensors;
using testing::HasSubstr;

TEST(Npy, ReadsEveryTypeInBothByteOrders) {
  const auto one = [](const std::string& descr, const std::string& data) {
    return read_npy(npy(dict(descr, "False", "(1,)"), data), "a").values.at(0);
  };
  EXPECT_EQ(one("<f4", bytes({0, 0, 0xc0, 0x3f})), 1.5);
  EXPECT_EQ(one(">f4", bytes({0x3f, 0xc0, 0, 0})), 1.5);
  EXPECT_EQ(one("<f2", bytes({0, 0x3e})), 1.5);
  EXPECT_EQ(one(">f8", bytes({0x3f, 0xf8, 0, 0, 0, 0, 0, 0})), 1.5);
  EXPECT_EQ(one("<i2", bytes({0xfe, 0xff})), -2);
  EXPECT_EQ(one(">u2", bytes({0xff, 0xfe})), 65534);
  EXPECT_EQ(one("|i1", bytes({0xff})), -1);
  EXPECT_EQ(one("<i8", bytes({5, 0, 0, 0, 0, 0, 0, 0})), 5);
  EXPECT_EQ(one("|b1", bytes({1})), 1);
}

TEST(Npy, FortranOrderComesOutInRows) {
  const Array array = read_npy(npy(dict("|u1", "True", "(2, 3)"), bytes({1, 4, 2, 5, 3, 6})), "a");
  EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, WhatIsWrittenIsReadAgain) {
  const Matrix<float> m = random_matrix<float>(5, 7, 3);
  const Array array = read_npy(write_npy(m.view()), "a");
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(array.values, std::vector<double>(m.elements().begin(), m.elements().end()));
  EXPECT_EQ(write_npy(m.view()).find('\n') % 64, 63u);  // data begin on a multiple of 64
  EXPECT_EQ(read_npy(write_npy(std::vector<Half>{Half(0.5f)}), "a").values.at(0), 0.5);
}

TEST(Npy, EveryDefectIsNamedWithItsPlace) {
  const auto fails = [](const std::string& file, const char* part) {
    EXPECT_THAT(message_of([&] { read_npy(file, "a.npy"); }), HasSubstr(part));
  };
  const std::string two = bytes({1, 2});
  fails("", "a.npy: byte 0: ");
  fails("PK\x03\x04 and more", "must begin with");
  fails(std::string("\x93NUMPY\x09\x00\x76\x00", 10), "byte 6: format version 9");
  fails(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "byte 8: the header claims to have 65535");
  fails(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "4294967295");
  fails(npy(dict("|O", "False", "(1,)"), two), "never loaded");
  fails(npy(dict("<c8", "False", "(1,)"), two), "complex");
  fails(npy(dict("<f3", "False", "(1,)"), two), "legal types are");
  fails(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", two), "records");
  fails(npy("{'descr': '|u1', 'fortran_order': False}", two), "must have descr");
  fails(npy("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", two),
        "twice");
  fails(npy("{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", two), "True or False");
  fails(npy("{'descr': '|u1', 'other': 0, 'shape': (1,)}", two), "other");
  fails(npy(dict("|u1", "False", "(3,)"), two), "more than the 2 elements");
  fails(npy(dict("|u1", "False", "(1,)"), two), "2 bytes of data follow");
  fails(npy(dict("|u1", "False", "(-1,)"), two), "is -1");
  fails(npy(dict("|u1", "False", "(4294967296, 4294967296)"), two), "more than");  // wraps to 0
  fails(npy(dict("<i8", "False", "(1,)"), bytes({0, 0, 0, 0, 0, 0, 0, 0x40})), "2^53");
}

// Cut anywhere and changed anywhere, a file is read or refused, never more.
template <class Read>
void expect_no_crash(const std::string& file, const Read& read) {
  const auto any = [&](const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::Internal) << error.what();
    }
  };
  for (std::size_t n = 0; n < file.size(); n += 1 + file.size() / 200) any(file.substr(0, n));
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = file;
    for (int change = 0; change < 3; ++change)
      damaged[std::size_t(random.below(std::int64_t(file.size())))] = char(random.below(256));
    any(damaged);
  }
}

TEST(Arrays, DamagedFilesAreRefusedOrReadNeverMore) {
  const Matrix<float> m = random_matrix<float>(4, 6, 3);
  expect_no_crash(write_npy(m.view()), [](const std::string& f) { read_npy(f, "a"); });
  expect_no_crash(write_safetensors(m.view(), "w"),
                  [](const std::string& f) { read_safetensors(f, "a", ""); });
  if (can_read_npz())
    expect_no_crash(write_npz(sparse::random_pattern(8, 8, {1, 1}, 0.3, 1)),
                    [](const std::string& f) { read_npz(f, "a"); });
}

TEST(Safetensors, ReadsTheTensorThatIsNamedOrTheOnlyMatrix) {
  const std::string file = safetensors(
      R"({"__metadata__":{"format":"pt"},"bias":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
      R"("w":{"dtype":"BF16","shape":[1,2],"data_offsets":[2,6]}})",
      bytes({7, 8, 0xc0, 0x3f, 0, 0x40}));
  EXPECT_EQ(read_safetensors(file, "a", "").values, (std::vector<double>{1.5, 2}));
  EXPECT_EQ(read_safetensors(file, "a", "bias").values, (std::vector<double>{7, 8}));
  EXPECT_THAT(message_of([&] { read_safetensors(file, "a", "q"); }), HasSubstr("\"bias\", \"w\""));
  const Matrix<double> m(3, 5);
  EXPECT_EQ(list_safetensors(write_safetensors(m.view(), "x"), "a").at(0).name, "x");
}

TEST(Safetensors, AreNotWrittenWithAShapeOfAnotherSize) {
  const auto write = [](std::vector<std::int64_t> shape, std::size_t bytes) {
    return write_safetensors({{"w", ElementType::F32, std::move(shape), std::string(bytes, 'a')}},
                             {});
  };
  EXPECT_EQ(list_safetensors(write({2, 3}, 24), "a").at(0).end, 24);
  EXPECT_EQ(list_safetensors(write({}, 4), "a").at(0).end, 4);
  EXPECT_THAT(message_of([&] { write({2, 3}, 20); }, ErrorCode::InvalidArgument),
              HasSubstr("tensor w: 20 bytes for a shape and type of 24 bytes"));
  EXPECT_THAT(message_of([&] { write({-2, -3}, 24); }, ErrorCode::InvalidArgument),
              HasSubstr("tensor w: a side of -2"));
  constexpr std::int64_t kLong = std::int64_t{1} << 40;
  EXPECT_THAT(message_of([&] { write({kLong, kLong}, 24); }, ErrorCode::LimitExceeded),
              HasSubstr("numbers of a tensor"));
  EXPECT_THAT(
      message_of([] { make_tensor<float>("v", {1, 2, 3}, {2}); }, ErrorCode::InvalidArgument),
      HasSubstr("tensor v"));
}

TEST(Safetensors, EveryAttackOnTheHeaderIsRefused) {
  const auto fails = [](const std::string& file, const char* part) {
    EXPECT_THAT(message_of([&] { read_safetensors(file, "a", ""); }), HasSubstr(part));
  };
  const auto tensor = [](const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  fails("1234567", "byte 0: 7 bytes");
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0},
        ~std::uint64_t{0} - 4}) {
    std::string file(8, '\0');
    for (int i = 0; i < 8; ++i) file[std::size_t(i)] = char(length >> (8 * i));
    fails(file + "{}", "the header claims to have");
  }
  fails(safetensors("{]", ""), "not JSON");
  fails(safetensors("[]", ""), "the text is an array; it must be an object");
  fails(safetensors(std::string(50000, '['), ""), "nested too deeply");
  fails(safetensors(R"({"w":{},"w":{}})", ""), "twice");
  fails(safetensors(R"({"w":{"dtype":"F4","shape":[],"data_offsets":[0,0]}})", ""), "dtype");
  fails(safetensors(tensor("[2]", "[0,1]"), "a"), "more than the 1 elements");
  fails(safetensors(tensor("[4294967296,4294967296]", "[0,0]"), "a"), "more than");
  fails(safetensors(tensor("[1,1]", "[1,0]"), "a"), "an end inside 0..1");
  fails(safetensors(tensor("[1,1]", "[0,9223372036854775807]"), "a"), "a whole number in 0..1");
  fails(safetensors(tensor("[1,1]", "[-1,0]"), "a"), "data_offsets[0] is -1");
  fails(safetensors(tensor("[1,1]", "[1,2]"), "ab"), "begins at 1");
  fails(safetensors(tensor("[1,1]", "[0,1]"), "ab"), "1 bytes belong to no tensor");
}

TEST(Npz, EveryKindOfMatrixComesBack) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 4}})
    for (const double density : {0.0, 0.3, 1.0}) {
      const auto m = sparse::random_pattern(12, 16, block, density, 4);
      const std::string file = write_npz(m);
      EXPECT_EQ(read_npz(file, "a"), cast<double>(sparse::with_block(m, BlockShape{1, 1})));
      EXPECT_EQ(file, write_npz(m));
    }
}

TEST(Npz, WithoutLibzipSaysWhatToInstall) {
  if (can_read_npz()) GTEST_SKIP() << "built with libzip";
  EXPECT_THROW(read_npz("", "a"), Error);
}

TEST(Files, TheEndingOfTheNameChoosesTheReader) {
  const tessera::test::TemporaryFolder folder;
  const Matrix<float> dense = to_dense(sparse::random_pattern(6, 5, {1, 1}, 0.4, 2));
  const sparse::Csr<double> expected = cast<double>(sparse::random_pattern(6, 5, {1, 1}, 0.4, 2));
  write_file(folder / "a.npy", write_npy(dense.view()));
  write_file(folder / "a.safetensors", write_safetensors(dense.view(), "layer.weight"));
  EXPECT_EQ(read_matrix(folder / "a.npy").matrix, expected);
  EXPECT_EQ(read_matrix(folder / "a.safetensors").matrix, expected);
  EXPECT_EQ(read_matrix(folder / "a.safetensors#layer.weight").matrix, expected);
  if (!can_read_npz()) return;
  write_file(folder / "a.npz", write_npz(sparse::random_pattern(6, 5, {1, 1}, 0.4, 2)));
  EXPECT_EQ(read_matrix(folder / "a.npz").matrix, expected);
}

}  // namespace
}  // namespace tessera::io
