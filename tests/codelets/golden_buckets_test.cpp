#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/tests/support/bucket_builder.hpp"

// Words that PopLibs 3.4's own encoder wrote. They are input for the kernels and the expected words
// of the builder of hand-made buckets. The matrix is cut into 2 x 2 cells of 2 x 3:
//   10 20  . |  .  .  .
//    . 30  . | 40  .  .
//   ---------+---------
//    .  . 50 | 60 70  .
//    .  .  . |  .  . 80
namespace tessera::test {
namespace {

using codelets::Format;
using codelets::KernelArgs;
using codelets::Operation;
using Words = std::vector<std::uint16_t>;

Words words(const std::string& text) {
  Words result;
  std::istringstream in(text);
  for (std::string token; in >> token;)
    if (token != "|") result.push_back(static_cast<std::uint16_t>(std::stoi(token)));
  return result;
}

const std::array<std::string, 4> kForward = {
    "1 0 0 3 36 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 2 2 0 0 14 | 2 2 2 0 9 | 0 2 0 16 | 1 1 16 | "
    "0",
    "2 0 1 1 22 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 1 1 0 | 0",
    "3 1 0 1 22 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 0 1 32 | 0",
    "4 1 1 3 36 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 2 2 0 0 14 | 2 2 2 0 9 | 0 2 0 16 | 1 1 32 | "
    "0"};
const std::array<std::string, 4> kGradA = {
    "1 0 0 3 39 4 1 29 4 | 0 2 0 0 20 | 0 2 2 0 15 | 0 2 0 0 16 | 0 2 2 0 11 | 1 2 4 0 8 16 | 0 1 "
    "0 0 | 0",
    "2 1 0 1 23 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 0 1 0 16 | 0",
    "3 0 1 1 23 4 0 19 2 | 0 2 0 0 10 | 0 2 2 0 5 | 2 1 0 0 | 0",
    "4 1 1 3 51 4 2 39 6 | 0 2 0 0 30 | 0 2 2 0 25 | 0 2 0 0 24 | 0 2 2 0 19 | 0 2 0 0 18 | 0 2 2 "
    "0 13 | 0 1 0 0 | 1 1 4 0 | 2 1 8 16 | 0"};
const std::array<std::string, 4> kHalf = {
    "1 0 0 3 26 4 1 19 2 | 0 4 0 0 10 | 2 4 0 0 9 | 0 2 0 8 | 1 1 8 | 0",
    "2 0 1 1 17 4 0 14 1 | 0 4 0 0 5 | 1 1 0 | 0", "3 1 0 1 17 4 0 14 1 | 0 4 0 0 5 | 0 1 16 | 0",
    "4 1 1 3 26 4 1 19 2 | 0 4 0 0 10 | 2 4 0 0 9 | 0 2 0 8 | 1 1 16 | 0"};
const std::string kFirstWithGradW =
    "1 0 0 3 49 4 1 42 4 | 0 2 0 0 33 | 0 2 2 0 28 | 2 2 0 0 27 | 2 2 2 0 22 | 3 | 0 12 0 1 | 1 8 "
    "1 1 | 2 8 0 1 | 0 2 0 16 | 1 1 16 | 0";
const std::string kBlocksWithGradW =
    "1 0 0 48 26 1 3 | 0 12 0 1 | 16 8 1 1 | 32 8 0 1 | 0 1 0 4 | 4 0 4 | 0";

const std::array<std::vector<float>, 4> kValues = {{{10, 20, 30}, {40}, {50}, {60, 70, 80}}};
constexpr std::array<std::array<float, 6>, 4> kMatrix = {
    {{10, 20, 0, 0, 0, 0}, {0, 30, 0, 40, 0, 0}, {0, 0, 50, 60, 70, 0}, {0, 0, 0, 0, 0, 80}}};

Matrix<float> counted(std::int64_t rows, std::int64_t cols) {
  Matrix<float> m(rows, cols);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) m(r, c) = float(3 * r - 2 * c + 1);
  return m;
}

// Holds all four tiles, each with the bucket of its own cell; the rows of `in` and `out` are those
// of the cell.
template <class In>
Matrix<float> run_cells(const codelets::KernelKey& key, const std::array<std::string, 4>& buckets,
                        const Matrix<float>& in) {
  const bool fwd = key.operation == Operation::Fwd;
  const std::int64_t z = in.cols();
  Matrix<float> out(fwd ? 4 : 6, z);
  Matrix<In> stored(in.rows(), z);
  for (std::int64_t r = 0; r < in.rows(); ++r)
    for (std::int64_t c = 0; c < z; ++c) stored(r, c) = In(in(r, c));
  for (std::int64_t cell = 0; cell < 4; ++cell) {
    const std::int64_t x = cell / 2 * 2, y = cell % 2 * 3;
    const Words meta = words(buckets[std::size_t(cell)]);
    std::vector<In> values;
    for (const float value : kValues[std::size_t(cell)]) values.push_back(In(value));
    KernelArgs args;
    args.meta = meta.data();
    args.values = values.data();
    args.sub_group = cell + 1;
    args.in = {&stored(fwd ? y : x, 0), fwd ? 3 : 2, z, z};
    args.out = {&out(fwd ? x : y, 0), fwd ? 2 : 3, z, z};
    codelets::find_kernel(key).reference(args);
  }
  return out;
}

Matrix<float> dense(const Matrix<float>& in, bool transposed) {
  Matrix<float> out(transposed ? 6 : 4, in.cols());
  for (std::int64_t x = 0; x < 4; ++x)
    for (std::int64_t y = 0; y < 6; ++y)
      for (std::int64_t z = 0; z < in.cols(); ++z) {
        const float r = kMatrix[std::size_t(x)][std::size_t(y)];
        if (transposed)
          out(y, z) += r * in(x, z);
        else
          out(x, z) += r * in(y, z);
      }
  return out;
}

TEST(GoldenBuckets, GiveTheDenseProductInEveryPassThatReadsThem) {
  const Matrix<float> s = counted(6, 4), q_grad = counted(4, 4);
  constexpr DataType kFloat = DataType::Float;
  EXPECT_EQ(run_cells<float>({Operation::Fwd, Format::Element, kFloat, kFloat, 16}, kForward, s),
            dense(s, false));
  EXPECT_EQ(
      run_cells<Half>({Operation::Fwd, Format::Element, DataType::Half, kFloat, 16}, kHalf, s),
      dense(s, false));
  EXPECT_EQ(run_cells<float>({Operation::GradATransposed, Format::Element, kFloat, kFloat, 16},
                             kForward, q_grad),
            dense(q_grad, true));
  EXPECT_EQ(
      run_cells<float>({Operation::GradA, Format::Element, kFloat, kFloat, 16}, kGradA, q_grad),
      dense(q_grad, true));
}

TEST(GoldenBuckets, GiveTheGradientOfEachNonZeroInOrder) {
  const Matrix<float> s = counted(6, 4), q_grad = counted(4, 4);
  const Words meta = words(kFirstWithGradW);
  std::array<float, 3> gradients{};
  KernelArgs args;
  args.meta = meta.data();
  args.gradients = gradients.data();
  args.sub_group = 1;
  args.in = {&q_grad.elements()[0], 2, 4, 4};
  args.in_s = {&s.elements()[0], 3, 4, 4};
  codelets::find_kernel({Operation::GradW, Format::Element, DataType::Float, DataType::Float, 16})
      .reference(args);
  const auto dot = [&](std::int64_t x, std::int64_t y) {
    float sum = 0;
    for (std::int64_t z = 0; z < 4; ++z) sum += q_grad(x, z) * s(y, z);
    return sum;
  };
  EXPECT_THAT(gradients, testing::ElementsAre(dot(0, 0), dot(0, 1), dot(1, 1)));
}

// Blocks of 4 x 4 at (0,0), (0,4) and (4,4); all elements of a block have one value.
TEST(GoldenBuckets, PlaceBlocksWhereTheirWordsSay) {
  const Words meta = words(kBlocksWithGradW);
  std::vector<float> values(48);
  for (std::size_t i = 0; i < 48; ++i) values[i] = float(i / 16 + 1);
  const std::array<float, 8> s = {1, 1, 1, 1, 10, 10, 10, 10};
  std::array<float, 8> q{};
  KernelArgs args;
  args.meta = meta.data();
  args.values = values.data();
  args.sub_group = 1;
  args.block = {4, 4};
  args.in = {s.data(), 8, 1, 1};
  args.out = {q.data(), 8, 1, 1};
  codelets::find_kernel({Operation::Fwd, Format::Block, DataType::Float, DataType::Float, 16})
      .reference(args);
  EXPECT_THAT(q, testing::ElementsAre(84, 84, 84, 84, 120, 120, 120, 120));
}

DrawnRecord first_cell() {
  DrawnRecord record = draw({"ab.", ".c."});
  record.workers = {{0, 1, 0, 2}, {0, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 2, 2}};
  return record;
}

TEST(BucketBuilder, WritesTheGoldenElementWords) {
  DrawnRecord record = first_cell();
  EXPECT_EQ(narrow(element_words({record}, 4, 4)), words(kForward[0]));
  record.grad_w_runs = {1, 1, 1};
  EXPECT_EQ(narrow(element_words({record}, 4, 4)), words(kFirstWithGradW));
}

TEST(BucketBuilder, WritesTheGoldenGradAWords) {
  DrawnRecord record = draw({"...", "d.."}, {}, 2);
  record.y_partition = 1;
  record.workers = {{0, 1, 0, 2}, {0, 1, 2, 2}};
  EXPECT_EQ(narrow(element_words({record}, 4, 4)), words(kForward[1]));
  EXPECT_EQ(narrow(grad_a_words({record}, 4, 4)), words(kGradA[1]));
}

TEST(BucketBuilder, WritesTheGoldenBlockWords) {
  DrawnRecord record = draw({"ab", ".c"}, {4, 4});
  record.grad_w_runs = {1, 1, 1};
  EXPECT_EQ(narrow(block_words({record}, {4, 4})), words(kBlocksWithGradW));
}

TEST(BucketBuilder, RefusesAWordThatDoesNotFitSixteenBits) {
  EXPECT_EQ(narrow({65535}), Words{65535});
  EXPECT_THROW(narrow({65536}), std::out_of_range);
}

TEST(BucketLayout, SizesOfRecordsAgreeWithTheGoldenWords) {
  using codelets::record_words;
  EXPECT_EQ(record_words({.element = true, .grad_w = false, .workers = 4}, 2, 3) + 1,
            std::int64_t(words(kForward[0]).size()));
  EXPECT_EQ(codelets::fixed_record_words({.element = true, .grad_w = false, .workers = 6}), 39);
  EXPECT_EQ(codelets::fixed_record_words({.element = true, .grad_w = true, .workers = 6}), 64);
  EXPECT_EQ(codelets::fixed_record_words({.element = false, .grad_w = true, .workers = 6}), 31);
  EXPECT_EQ(record_words({.element = false, .grad_w = true, .workers = 3}, 2, 3) + 1,
            std::int64_t(words(kBlocksWithGradW).size()));
}

TEST(BucketLayout, LoadsWhatItStores) {
  const codelets::ElementHeader header{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<std::uint32_t> stored;
  codelets::store(header, [&](std::int32_t word) { stored.push_back(std::uint32_t(word)); });
  EXPECT_THAT(stored, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(codelets::load<codelets::ElementHeader>(stored.data()), header);
}

}  // namespace
}  // namespace tessera::test
