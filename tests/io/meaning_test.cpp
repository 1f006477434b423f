// Files whose arrays mean something else than a matrix of these numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/zip.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/row_file.hpp"
#include "tessera/tests/io/array_files.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::io {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;

// A checkpoint of a matrix 3 x 9 with three weights, as compressed-tensors stores it.
std::string compressed(const std::string& mask) {
  return write_safetensors({make_tensor<float>("fc.compressed", {2, 3, 4}, {3}),
                            make_tensor<std::uint8_t>(mask, {2, 1, 0, 0, 16, 0}, {3, 2}),
                            make_tensor<std::int64_t>("fc.shape", {3, 9}, {2})},
                           {});
}

TEST(CompressedCheckpoints, AreNoWeights) {
  for (const char* name : {"fc.bitmask", "bitmask", "fc.weight_packed"})
    for (const std::string& asked : {std::string(), std::string(name)})
      EXPECT_THAT(
          message_of([&] { read_safetensors(compressed(name), "a.safetensors", asked); }),
          AllOf(HasSubstr("a.safetensors: tensor \"" + std::string(name) + "\" is "),
                HasSubstr("of compressed weights, not the weights; decompress the checkpoint")));
  EXPECT_EQ(read_safetensors(compressed("fc.mask"), "a", "").values.size(), 6u)
      << "whole numbers of another name may be weights";
  Matrix<float> weights(1, 1);
  weights(0, 0) = 2.5F;
  EXPECT_EQ(
      read_safetensors(write_safetensors(std::as_const(weights).view(), "fc.bitmask"), "a", "")
          .values[0],
      2.5)
      << "a mask has no fractions";
}

TEST(WholeNumbersWithAScale, AreNoWeights) {
  const std::string file =
      write_safetensors({make_tensor<std::uint8_t>("fc.weight", {1, 0, 0, 1}, {2, 2}),
                         make_tensor<float>("fc.weight_scale", {0.5F}, {1})},
                        {});
  for (const char* asked : {"", "fc.weight"})
    EXPECT_THAT(message_of([&] { read_safetensors(file, "a.safetensors", asked); }),
                HasSubstr("a.safetensors: tensor \"fc.weight\" is whole numbers that "
                          "\"fc.weight_scale\" scales, not the weights"));
  EXPECT_EQ(read_safetensors(file, "a", "fc.weight_scale").values.size(), 1u);
}

TEST(WholeNumbersWithAScale, HaveAScaleThatIsNoMatrix) {
  const std::vector<float> scale{0.5F, 2};
  const auto file_of = [&](const std::vector<std::int64_t>& shape) {
    return write_safetensors({make_tensor<std::uint8_t>("fc.weight", {1, 0, 0, 1}, shape),
                              make_tensor<float>("fc.weight_scale", scale, {2, 1})},
                             {});
  };
  EXPECT_THAT(message_of([&] { read_safetensors(file_of({2, 2}), "a", ""); }),
              HasSubstr("\"fc.weight_scale\" scales, not the weights"));
  EXPECT_THAT(message_of([&] { read_safetensors(file_of({2, 1, 2}), "a", ""); }),
              HasSubstr("0 tensors have two dimensions"));
  EXPECT_EQ(read_safetensors(file_of({2, 1, 2}), "a", "fc.weight_scale").values[1], 2);
}

// An archive of 2 x 2 with the place 0, 0 twice.
std::string twice(const std::string& format) {
  const bool is_bsr = format == "bsr";
  using Numbers = std::vector<std::int32_t>;
  return internal::pack(
      {{"format.npy", test::npy(test::dict("|S3", "False", "()"), format)},
       {"shape.npy", write_npy(std::vector<std::int64_t>{2, 2})},
       {"indptr.npy", write_npy(Numbers{0, 2, 3})},
       {"indices.npy", write_npy(Numbers{0, 0, 1})},
       {"row.npy", write_npy(Numbers{0, 0, 1})},
       {"col.npy", write_npy(Numbers{0, 0, 1})},
       {"data.npy", is_bsr ? test::npy(test::dict("<f4", "False", "(3, 1, 1)"),
                                       std::string("\0\0\x80\x3f\0\0\0\x40\0\0\0\x40", 12))
                           : write_npy(std::vector<float>{1, 2, 2})}});
}

TEST(PlacesGivenTwice, AreRefusedOrAddedUpInEveryFormat) {
  if (!can_read_npz()) GTEST_SKIP() << "built without libzip";
  const sparse::Csr<double> sum{
      .rows = 2, .cols = 2, .row_begin = {0, 1, 2}, .col = {0, 1}, .values = {3, 2}};
  for (const char* format : {"csr", "csc", "bsr", "coo"}) {
    EXPECT_EQ(read_npz(twice(format), "a.npz", sparse::Duplicates::Sum), sum) << format;
    EXPECT_THAT(message_of([&] { read_npz(twice(format), "a.npz"); }),
                AllOf(HasSubstr("a.npz: "), HasSubstr("given twice"), HasSubstr("add them up"),
                      testing::Not(HasSubstr("::"))))
        << format;
  }
  const tessera::test::TemporaryFolder folder;
  const std::string file = folder.write("a.npz", twice("csr"));
  EXPECT_THAT(message_of([&] { read_rows<float>(file, index_rows(file), {0, 2}); }),
              HasSubstr("row 0, column 0, counted from 0, is given twice"));
}

TEST(Ranges, AreNotWrittenBackwards) {
  const tessera::test::TemporaryFolder folder;
  const std::string file = folder.write("a.smtx", "1, 0, 1\n0 1\n0\n");
  const RowIndex index = index_rows(file);
  EXPECT_THAT(message_of([&] { read_rows<float>(file, index, {0, 1}); }),
              AllOf(HasSubstr("no value is legal"), testing::Not(HasSubstr("0..-1"))));
}

}  // namespace
}  // namespace tessera::io
