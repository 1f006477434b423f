#include "tessera/codelets/kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/codelets/kernel_case.hpp"
#include "tessera/tests/codelets/random_case.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;

class EveryKernel : public testing::TestWithParam<KernelEntry> {
 protected:
  const KernelKey& key() const { return GetParam().key; }
  void expect_right(const KernelCase& c) const {
    EXPECT_LE(worst_excess(c, GetParam().reference), 0.0);
    EXPECT_LE(worst_excess(c, GetParam().run), 0.0);
  }
};

// R = 1 . 2   S = 1 2   dQ = 1 2   Q = R S = 11 14   dS = R' dQ = 1  2   dR = 5 . 17
//     . 3 .       3 4        3 4              9 12                9 12        . 25 .
//                 5 6                                             2  4
std::vector<double> expected_of_elements(Operation operation) {
  if (operation == Operation::Fwd) return {11, 14, 9, 12};
  if (operation == Operation::GradW) return {5, 17, 25};
  return {1, 2, 9, 12, 2, 4};
}

KernelCase element_drawing(const KernelKey& key) {
  KernelCase c(key, {}, {2, 3, 2, 0}, {draw({"1.2", ".3."})});
  double next = 0;
  for (const std::int64_t r : {0, 1, 2})
    for (const std::int64_t z : {0, 1}) {
      ++next;
      if (!c.y_is_result()) c.y_side.set(r, z, next);
      if (r < 2 && !c.x_is_result()) c.x_side.set(r, z, next);
    }
  for (std::size_t i = 0; i < 3; ++i) c.values.set(i, i == 0 ? 1 : i == 1 ? 2 : 3);
  return c;
}

// R = 1 2 . .   S = dQ = 1 0   Q = 1  2   dS = 1  3   dR = 1 0 . .
//     3 4 . .            0 1       3  4        2  4        0 1 . .
//     . . 5 6            2 0      10 12       10 14        . . 4 0
//     . . 7 8            0 2      14 16       12 16        . . 0 4
std::vector<double> expected_of_blocks(Operation operation) {
  if (operation == Operation::Fwd) return {1, 2, 3, 4, 10, 12, 14, 16};
  if (operation == Operation::GradW) return {1, 0, 0, 1, 4, 0, 0, 4};
  return {1, 3, 2, 4, 10, 14, 12, 16};
}

KernelCase block_drawing(const KernelKey& key) {
  const BlockShape block{2, 2};
  KernelCase c(key, block, {4, 4, 2, 0}, {draw({"b.", ".b"}, block)});
  for (const std::int64_t r : {0, 1, 2, 3}) {
    if (!c.y_is_result()) c.y_side.set(r, r % 2, 1 + double(r / 2));
    if (!c.x_is_result()) c.x_side.set(r, r % 2, 1 + double(r / 2));
  }
  for (std::size_t i = 0; i < 8; ++i) c.values.set(i, double(i + 1));
  return c;
}

TEST_P(EveryKernel, ComputesADrawingSmallEnoughToCheckByEye) {
  const bool element = key().format == Format::Element;
  for (const Kernel kernel : {GetParam().reference, GetParam().run}) {
    KernelCase c = element ? element_drawing(key()) : block_drawing(key());
    c.run(kernel);
    EXPECT_EQ(results(c), element ? expected_of_elements(key().operation)
                                  : expected_of_blocks(key().operation));
  }
}

TEST_P(EveryKernel, StaysInsideTheRoundingBoundAtEveryRemainderOfZ) {
  for (const std::int64_t z : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17})
    for (const std::int64_t gap : {0, 3}) {
      SCOPED_TRACE(testing::Message() << "z " << z << " gap " << gap << " seed 7");
      expect_right(random_case(key(), {.block = {4, 4}, .z = z, .gap = gap}));
    }
}

class EveryBlockKernel : public EveryKernel {};

TEST_P(EveryBlockKernel, TakesBlocksOfAnyShape) {
  for (const BlockShape block : {BlockShape{1, 2}, {2, 1}, {3, 5}, {8, 8}, {16, 16}, {1, 1}}) {
    SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << " seed 11");
    expect_right(random_case(key(), {.block = block, .z = 3, .gap = 1, .seed = 11}));
  }
}

// Sums of a few values +-1 are exact in every type, so the test compares for equality.
TEST_P(EveryKernel, IsExactOnPlusAndMinusOne) {
  KernelCase c = random_case(key(), {.block = {4, 4}, .z = 9, .gap = 2});
  Random random(13);
  c.fill([&random] { return double(random.sign()); });
  std::vector<double> exact;
  for (const ExactSum& sum : exact_results(c)) exact.push_back(sum.sum);
  for (const Kernel kernel : {GetParam().reference, GetParam().run}) {
    KernelCase copy = c;
    copy.run(kernel);
    EXPECT_EQ(results(copy), exact);
  }
}

TEST_P(EveryKernel, LeavesEverythingAsItWasWhenNoRecordIsItsOwn) {
  KernelCase c = random_case(key(), {.block = {4, 4}, .z = 5, .gap = 1});
  c.sub_group = 5;
  const std::vector<double> before = results(c);
  c.run(GetParam().reference);
  c.run(GetParam().run);
  EXPECT_EQ(results(c), before);
}

TEST_P(EveryKernel, LeavesEverythingAsItWasOnAnEmptyBucket) {
  KernelCase c(key(), shape_for(key(), {4, 4}), {4, 4, 3, 0}, {});
  c.fill([] { return 1.5; });
  const std::vector<double> before = results(c);
  c.run(GetParam().reference);
  c.run(GetParam().run);
  EXPECT_EQ(results(c), before);
}

TEST_P(EveryKernel, AddsTheSameAgainOnASecondVisit) {
  KernelCase c = key().format == Format::Element ? element_drawing(key()) : block_drawing(key());
  c.run(GetParam().run);
  std::vector<double> twice = results(c);
  for (double& number : twice) number *= 2;
  c.run(GetParam().run);
  EXPECT_EQ(results(c), twice);
}

TEST_P(EveryKernel, DoesNotReadTheTablesOfWorkersDifferentlyWhenTheyAreLonger) {
  KernelCase c = random_case(key(), {.block = {4, 4}, .z = 4});
  std::vector<DrawnRecord> shared = c.records;
  for (DrawnRecord& record : shared) {
    if (key().operation != Operation::GradA)
      record.workers = {{0, std::int64_t(record.rows.size()), 0, 2},
                        {0, std::int64_t(record.rows.size()), 2, 2}};
    record.grad_w_runs = {record.entries() - record.entries() / 2, record.entries() / 2};
  }
  KernelCase with_tables(key(), c.block, {c.x, c.y, c.z, c.gap}, shared);
  with_tables.sub_group = c.sub_group;
  with_tables.x_side = c.x_side;
  with_tables.y_side = c.y_side;
  with_tables.values = c.values;
  with_tables.gradients = c.gradients;
  c.run(GetParam().run);
  with_tables.run(GetParam().run);
  EXPECT_EQ(results(c), results(with_tables));
}

// Every result has one product, so that the bound is a few units in the last place.
KernelCase thin_case(const KernelKey& key) {
  KernelCase c(key, {1, 1}, {3, 3, 1, 0}, {draw({"a..", ".b.", "..c"})});
  Random random(17);
  c.fill([&random] { return 1 + random.unit(); });
  return c;
}

template <int kDivisor>
void off_by_a_little(const codelets::KernelArgs& args, const KernelKey& key) {
  codelets::find_kernel(key).reference(args);
  if (key.sum == DataType::Float) {
    float* out = static_cast<float*>(args.out.data);
    for (std::int64_t i = 0; i < args.out.rows * args.out.row_stride; ++i)
      out[i] *= 1 + 1.0f / kDivisor;
    return;
  }
  Half* out = static_cast<Half*>(args.out.data);
  for (std::int64_t i = 0; i < args.out.rows * args.out.row_stride; ++i)
    out[i] = Half(float(out[i]) * (1 + 1.0f / kDivisor));
}

constexpr KernelKey kFloatSums{Operation::Fwd, Format::Element, DataType::Float, DataType::Float,
                               16};
constexpr KernelKey kMixedSums{Operation::Fwd, Format::Element, DataType::Half, DataType::Float,
                               16};
constexpr KernelKey kHalfSums{Operation::Fwd, Format::Block, DataType::Half, DataType::Half, 16};

TEST(RoundingBound, RejectsAKernelThatIsWrongByOnePartInAMillion) {
  EXPECT_LE(worst_excess(thin_case(kFloatSums), codelets::find_kernel(kFloatSums).reference), 0.0);
  EXPECT_GT(worst_excess(thin_case(kFloatSums),
                         [](const codelets::KernelArgs& args) noexcept {
                           off_by_a_little<1000000>(args, kFloatSums);
                         }),
            0.0);
  EXPECT_GT(worst_excess(thin_case(kMixedSums),
                         [](const codelets::KernelArgs& args) noexcept {
                           off_by_a_little<1000000>(args, kMixedSums);
                         }),
            0.0);
}

// A half has 11 bits, so a change of one part in a million disappears.
TEST(RoundingBound, RejectsAKernelWithHalfSumsThatIsWrongByOnePercent) {
  EXPECT_LE(worst_excess(thin_case(kHalfSums), codelets::find_kernel(kHalfSums).reference), 0.0);
  EXPECT_GT(worst_excess(thin_case(kHalfSums),
                         [](const codelets::KernelArgs& args) noexcept {
                           off_by_a_little<100>(args, kHalfSums);
                         }),
            0.0);
}

TEST(RoundingBound, RejectsAKernelThatWritesBetweenTheRows) {
  EXPECT_GT(worst_excess(random_case(kFloatSums, {.z = 4, .gap = 1}),
                         [](const codelets::KernelArgs& args) noexcept {
                           codelets::find_kernel(kFloatSums).reference(args);
                           static_cast<float*>(args.out.data)[args.out.z] += 1;
                         }),
            0.0);
}

TEST(Kernels, HalfSumsAreRoundedAfterEveryStep) {
  // 2048 + 1 is a tie in half and rounds to the even 2048, twice; a float sum would be 2050.
  KernelCase c(kHalfSums, {1, 2}, {1, 2, 1, 0}, {draw({"b"}, {1, 2})});
  c.x_side.set(0, 0, 2048);
  for (const std::int64_t y : {0, 1}) c.y_side.set(y, 0, 1);
  for (const std::size_t i : {0, 1}) c.values.set(i, 1);
  c.run(codelets::find_kernel(kHalfSums).reference);
  EXPECT_THAT(results(c), ElementsAre(2048));
}

TEST(Kernels, ProductsOfHalvesAreExactInFloat) {
  // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20 needs 21 bits.
  KernelCase c(kMixedSums, {}, {1, 1, 1, 0}, {draw({"a"})});
  c.y_side.set(0, 0, 1 + 0x1p-10);
  c.values.set(0, 1 + 0x1p-10);
  c.run(codelets::find_kernel(kMixedSums).reference);
  EXPECT_THAT(results(c), ElementsAre(1 + 0x1p-9 + 0x1p-20));
}

// 2^-150 is half the smallest float. Rounded alone, the tie goes to 0; added to 2^-149 first, it
// goes to the even 2^-148.
TEST(Kernels, ProductsOfBFloatsAreNotRoundedBeforeTheyAreAdded) {
  const KernelKey key{Operation::Fwd, Format::Element, DataType::BFloat16, DataType::Float, 16};
  KernelCase c(key, {}, {1, 1, 2, 0}, {draw({"a"})});
  for (const std::int64_t z : {0, 1}) {
    c.x_side.set(0, z, 0x1p-149);
    c.y_side.set(0, z, 0x1p-75);
  }
  c.values.set(0, 0x1p-75);
  for (const Kernel kernel :
       {codelets::find_kernel(key).reference, codelets::find_kernel(key).run}) {
    KernelCase copy = c;
    copy.run(kernel);
    EXPECT_THAT(results(copy), ElementsAre(0x1p-148, 0x1p-148));
  }
}

TEST(KernelList, NamesEveryKernelOnceAndByItsKey) {
  std::set<std::string> names;
  for (const KernelEntry& kernel : codelets::kernels()) {
    EXPECT_EQ(kernel.name, codelets::kernel_name(kernel.key));
    EXPECT_TRUE(names.insert(std::string(kernel.name)).second) << kernel.name;
    EXPECT_EQ(&codelets::find_kernel(kernel.key), &kernel);
  }
  EXPECT_EQ(names.size(), 56u);
}

TEST(KernelList, SaysWhatThereIsWhenAKernelIsMissing) {
  try {
    codelets::find_kernel({Operation::GradA, Format::Block, DataType::Float, DataType::Float, 16});
    FAIL() << "a block bucket has no GradA meta-information of its own";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("grad_a_block_f32_f32_w16"));
    EXPECT_THAT(error.what(), testing::HasSubstr("grad_a_transposed_block_f32_f32_w16"));
  }
}

std::vector<KernelEntry> kernels_of(std::initializer_list<Format> formats) {
  std::vector<KernelEntry> result;
  for (const KernelEntry& kernel : codelets::kernels())
    if (std::ranges::find(formats, kernel.key.format) != formats.end()) result.push_back(kernel);
  return result;
}

std::string name_of(const testing::TestParamInfo<KernelEntry>& p) {
  return std::string(p.param.name);
}

INSTANTIATE_TEST_SUITE_P(List, EveryKernel,
                         testing::ValuesIn(kernels_of({Format::Element, Format::Block})), name_of);
INSTANTIATE_TEST_SUITE_P(List, EveryBlockKernel, testing::ValuesIn(kernels_of({Format::Block})),
                         name_of);

}  // namespace
}  // namespace tessera::test
