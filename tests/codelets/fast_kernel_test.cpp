// Vector kernels must give the bits of their reference kernels on every instruction set that this
// CPU has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/fast/pair_sums.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"
#include "tessera/codelets/internal/fast/term_rows.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/tests/codelets/kernel_case.hpp"
#include "tessera/tests/codelets/random_case.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::test {
namespace {

using codelets::internal::SimdTarget;
using codelets::internal::UseSimdTarget;

struct KernelOnTarget {
  KernelEntry kernel;
  SimdTarget target;
};

void PrintTo(const KernelOnTarget& p, std::ostream* out) {
  *out << p.kernel.name << " on " << p.target.name;
}

// Compares all bits, including the sign of zero; all NaNs count as equal.
std::vector<std::uint64_t> bits_after(KernelCase c, Kernel kernel) {
  c.run(kernel);
  std::vector<std::uint64_t> bits;
  for (const double number : results(c))
    bits.push_back(std::isnan(number) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(number));
  return bits;
}

class FastKernel : public testing::TestWithParam<KernelOnTarget> {
 protected:
  void SetUp() override {
    if (!GetParam().target.runs_here)
      GTEST_SKIP() << "this CPU does not have " << GetParam().target.name;
  }
  const KernelKey& key() const { return GetParam().kernel.key; }
  // Only the first difference is reported.
  void expect_same_bits(const KernelCase& c) const {
    const auto expected = bits_after(c, GetParam().kernel.reference);
    const UseSimdTarget use(GetParam().target);
    const auto got = bits_after(c, GetParam().kernel.run);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], expected[i]) << "result " << i << ": " << std::bit_cast<double>(got[i])
                                     << " instead of " << std::bit_cast<double>(expected[i]);
  }
};

std::vector<std::int64_t> edges_of_z() {
  std::vector<std::int64_t> edges;
  for (std::int64_t z = 1; z <= 17; ++z) edges.push_back(z);
  for (const std::int64_t z : {31, 32, 33, 47, 63, 64, 65, 127, 128, 129, 145, 192, 256})
    edges.push_back(z);
  return edges;
}

TEST_P(FastKernel, GivesTheBitsOfItsSlowTwinAtEveryRemainderOfZ) {
  for (const std::int64_t z : edges_of_z())
    for (const std::int64_t gap : {0, 3}) {
      SCOPED_TRACE(testing::Message() << "z " << z << " gap " << gap << " seed 19");
      expect_same_bits(random_case(
          key(), {.block = {4, 4}, .z = z, .gap = gap, .seed = 19, .rows = 3, .cols = 4}));
    }
}

class FastBlockKernel : public FastKernel {};

TEST_P(FastBlockKernel, GivesTheBitsOfItsSlowTwinForBlocksOfAnyShape) {
  for (const BlockShape block : {BlockShape{1, 1},
                                 {32, 1},
                                 {70, 1},
                                 {1, 9},
                                 {2, 2},
                                 {3, 5},
                                 {7, 6},
                                 {8, 8},
                                 {16, 16},
                                 {17, 3},
                                 {13, 15}})
    for (const std::int64_t z : {1, 3, 8, 16, 21, 32, 33, 48, 50}) {
      SCOPED_TRACE(testing::Message()
                   << block.rows << "x" << block.cols << " z " << z << " seed 23");
      expect_same_bits(
          random_case(key(), {.block = block, .z = z, .gap = 1, .seed = 23, .rows = 2, .cols = 3}));
    }
}

// A block of 64 x 64 fills the buffer for values exactly; 64 x 65 is one column too wide.
TEST_P(FastBlockKernel, GivesTheBitsOfItsSlowTwinForBlocksLargerThanItsRoom) {
  for (const BlockShape block : {BlockShape{64, 64}, {64, 65}, {1, 5000}}) {
    SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << " seed 29");
    expect_same_bits(
        random_case(key(), {.block = block, .z = 5, .seed = 29, .rows = 1, .cols = 2}));
  }
}

class FastReplacing : public FastKernel {};

// The flag must have the effect of clearing exactly the rows or gradients that are named.
TEST_P(FastReplacing, TakesWhatItNamesForZeros) {
  for (const std::int64_t side : {3, 4, 16})
    for (const std::int64_t z : {1, 2, 16, 33, 150})
      for (const std::int64_t cols : {3, 40}) {
        if (kIsSanitized && (z == 2 || z == 150 || cols == 40)) continue;
        SCOPED_TRACE(testing::Message() << side << " z " << z << " columns " << cols << " seed 43");
        KernelCase replacing = random_case(key(), {.block = {side, side},
                                                   .z = z,
                                                   .gap = z % 2,
                                                   .seed = 43,
                                                   .rows = 9,
                                                   .cols = cols,
                                                   .once = true});
        KernelCase cleared = replacing;
        cleared.for_each_own([&](std::int64_t x, std::int64_t, std::size_t value) {
          if (key().operation == Operation::GradW) return cleared.gradients.set(value, 0);
          for (std::int64_t i = 0; i < z; ++i) cleared.x_side.set(x, i, 0);
        });
        const auto expected = bits_after(cleared, GetParam().kernel.reference);
        replacing.replaces = true;
        EXPECT_EQ(bits_after(replacing, GetParam().kernel.reference), expected);
        expect_same_bits(replacing);
      }
}

// Words are whole offsets if no gap follows a row, and fractions of offsets if rows and gaps are a
// multiple of the row. One column is summed in lanes, and the last vector may be partly filled.
TEST_P(FastKernel, GivesTheBitsOfItsSlowTwinForRowsOfAnyLength) {
  for (const std::int64_t cols : {1, 15, 16, 17, 31, 33, 40, 67, 100})
    for (const std::int64_t z : {1, 2, 8, 16, 40})
      for (const std::int64_t gap : {std::int64_t{0}, std::int64_t{1}, z, 2 * z}) {
        SCOPED_TRACE(testing::Message() << cols << " columns z " << z << " gap " << gap);
        expect_same_bits(random_case(
            key(), {.block = {1, 2}, .z = z, .gap = gap, .seed = 41, .rows = 7, .cols = cols}));
      }
}

// There are more rows and terms than one call hands over.
TEST_P(FastKernel, GivesTheBitsOfItsSlowTwinWhenListsOverflow) {
  for (const auto& [rows, cols] : {std::pair{150, 3}, {40, 60}, {2, 1100}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << cols << " columns, seed 31");
    expect_same_bits(
        random_case(key(), {.block = {1, 2}, .z = 2, .seed = 31, .rows = rows, .cols = cols}));
  }
}

// Zeros of both signs, numbers below the normal halves and floats, infinity, and NaN.
TEST_P(FastKernel, GivesTheBitsOfItsSlowTwinForSpecialNumbers) {
  const std::vector<double> special = {0.0,     -0.0,     0x1p-24, -0x3p-24, 0x1p-14, 65504,
                                       -0x1p-9, INFINITY, 1,       -0x1p-3,  -3,      0x1p-75};
  for (const std::int64_t z : {1, 5, 16, 35})
    for (const double rare : {1.0, -1e30, double(NAN), -double(INFINITY)}) {
      SCOPED_TRACE(testing::Message() << "z " << z << " rare " << rare << " seed 37");
      KernelCase c = random_case(key(), {.block = {2, 3}, .z = z, .seed = 37});
      Random random(37);
      const auto count = std::int64_t(special.size());
      c.fill([&] {
        if (random.below(50) == 0) return rare;
        const double number = special[std::size_t(random.below(count))];
        // If all values were infinite, only NaNs would be left to compare.
        return std::isinf(number) && random.below(20) > 0 ? 0.5 : number;
      });
      expect_same_bits(c);
    }
}

TEST_P(FastKernel, RunsOnTheTargetItIsTestedOn) {
  const UseSimdTarget use(GetParam().target);
  EXPECT_EQ(codelets::internal::simd_target_in_use(), GetParam().target.name);
}

// The comparison of bits detects another order of additions, which the bound on rounding accepts.
TEST(SameBits, SeesTheOrderOfAdditions) {
  const KernelKey key{Operation::Fwd, Format::Element, DataType::Float, DataType::Float, 16};
  const Kernel fwd = codelets::find_kernel(key).reference;
  KernelCase c(key, {}, {1, 3, 2, 0}, {draw({"abc"})});
  KernelCase other(key, {}, {1, 3, 2, 0}, {draw({"abc"})});
  for (const std::size_t i : {0, 1, 2}) {
    c.y_side.set(std::int64_t(i), 0, 1);
    other.y_side.set(std::int64_t(i), 0, 1);
    c.values.set(i, i == 0 ? 1 : 0x1p-24);
    other.values.set(i, i == 2 ? 1 : 0x1p-24);
  }
  EXPECT_NE(bits_after(c, fwd), bits_after(other, fwd));
}

// A processor uses the dot product of pairs only if that is faster there, but its bits are those of
// the converted products wherever it runs.
TEST(PairSums, HaveTheBitsOfConvertedProducts) {
  Random random(11);
  for (const std::int64_t side : {4, 8, 16})
    for (const std::int64_t z : {16, 37, 64}) {
      const std::vector<std::uint32_t> columns = {0, std::uint32_t(2 * side)};
      std::vector<BFloat16> values(std::size_t(2 * side * side)), in(std::size_t(3 * side * z));
      for (BFloat16& value : values) value = BFloat16(float(2 * random.unit() - 1));
      for (BFloat16& value : in) value = BFloat16(float(2 * random.unit() - 1));
      std::vector<float> pairs(std::size_t(side * z), 0.25f), converted = pairs;
      codelets::internal::BlockSums<BFloat16> sums{.row = 0,
                                                   .columns = columns,
                                                   .values = values.data(),
                                                   .rows = side,
                                                   .cols = side,
                                                   .in = in.data(),
                                                   .in_stride = z,
                                                   .out = pairs.data(),
                                                   .out_stride = z,
                                                   .z = z};
      if (!codelets::internal::pair_sums(sums))
        GTEST_SKIP() << "this CPU has no dot product of pairs";
      sums.out = converted.data();
      codelets::internal::block_sums(sums);
      EXPECT_EQ(pairs, converted) << side << " x " << side << ", z " << z;
    }
}

// Numbers below the normal floats, as operands and as products, and those that are none are drawn.
double special_number(Random& random) {
  constexpr double kSpecial[] = {0x1p-130, -0x1p-127, -0.0, HUGE_VAL, -HUGE_VAL, NAN};
  const std::int64_t kind = random.below(60);
  if (kind < 6) return kSpecial[kind];
  return (2 * random.unit() - 1) * (kind < 20 ? 0x1p-65 : 1);
}

TEST(PairSums, OfFloatsHaveTheBitsOfTheKernelOfBFloat16) {
  Random random(12);
  for (const SimdTarget& target : codelets::internal::simd_targets())
    for (const BlockShape block : {BlockShape{4, 4}, {8, 8}, {16, 16}, {2, 3}, {32, 1}, {5, 7}})
      for (const std::int64_t z : {1, 3, 8, 15, 16, 17, 40, 64}) {
        if (!target.runs_here) continue;
        SCOPED_TRACE(testing::Message()
                     << target.name << " " << block.rows << "x" << block.cols << " z " << z);
        const KernelKey narrow_key{.format = Format::Block, .in = DataType::BFloat16};
        const KernelKey wide_key{.format = Format::Block, .in = DataType::Float};
        KernelCase narrow = random_case(
            narrow_key, {.block = block, .z = z, .gap = z % 2, .seed = 19, .rows = 3, .cols = 4});
        narrow.fill([&] { return special_number(random); });
        KernelCase wide(wide_key, block, {narrow.x, narrow.y, narrow.z, narrow.gap},
                        narrow.records);
        wide.sub_group = narrow.sub_group;
        wide.pairs = true;
        const auto copy = [](const Store& from, Store& to) {
          for (std::size_t i = 0; i < from.size(); ++i) to.set(i, from.get(i));
        };
        copy(narrow.x_side.store, wide.x_side.store);
        copy(narrow.y_side.store, wide.y_side.store);
        copy(narrow.values, wide.values);
        const auto expected = bits_after(narrow, codelets::find_kernel(narrow_key).reference);
        EXPECT_EQ(bits_after(wide, codelets::find_kernel(wide_key).reference), expected);
        const UseSimdTarget use(target);
        EXPECT_EQ(bits_after(wide, codelets::find_kernel(wide_key).run), expected);
        EXPECT_EQ(bits_after(narrow, codelets::find_kernel(narrow_key).run), expected);
      }
}

TEST(SimdTargets, HaveDifferentNamesAndOneThatRunsHere) {
  std::set<std::string> names;
  bool any = false;
  for (const SimdTarget& target : codelets::internal::simd_targets()) {
    EXPECT_TRUE(names.insert(target.name).second) << target.name;
    any = any || target.runs_here;
  }
  EXPECT_TRUE(any);
}

TEST(FastKernels, AreAllButTheHalfSumsOfBlocks) {
  for (const KernelEntry& kernel : codelets::kernels())
    EXPECT_EQ(kernel.run != kernel.reference,
              kernel.key.sum == DataType::Float || kernel.key.format == codelets::Format::Element)
        << kernel.name;
}

std::uint32_t row_of(const codelets::internal::RowCode& code, std::uint32_t word) {
  return code.row_of(reinterpret_cast<const std::byte*>(&word));
}

TEST(RowCode, DividesExactlyEveryMultipleThatFitsAWord) {
  using codelets::internal::row_code;
  for (const std::int64_t scale : {1, 2, 3, 4, 6, 7, 12, 100, 255, 256, 4095, 65535}) {
    for (std::int64_t row = 0; row * scale <= 65535; ++row)
      ASSERT_EQ(row_of(row_code<std::uint16_t>(scale), std::uint32_t(row * scale)), row) << scale;
    const std::int64_t largest = 0xffffffffll / scale;
    ASSERT_EQ(row_of(row_code<std::uint32_t>(scale), std::uint32_t(largest * scale)), largest)
        << scale;
  }
  EXPECT_EQ(row_of(row_code<std::uint32_t>(0xfffffff7ll), 0xfffffff7u), 1u);
}

TEST(RowCode, ReadsOnlyItsOwnWord) {
  EXPECT_EQ(row_of(codelets::internal::row_code<std::uint16_t>(4), 0xffff0008u), 2u);
}

template <class Wanted>
std::vector<KernelOnTarget> fast_kernels(const Wanted& wanted) {
  std::vector<KernelOnTarget> all;
  std::vector<SimdTarget> targets = codelets::internal::simd_targets();
  if (kIsSanitized &&
      targets.size() > 1)  // EMU128 has no vectors, and the reference kernel has as few
    std::erase_if(targets, [](const SimdTarget& target) { return target.name == "EMU128"; });
  for (const SimdTarget& target : targets)
    for (const KernelEntry& kernel : codelets::kernels())
      if (kernel.run != kernel.reference && wanted(kernel.key)) all.push_back({kernel, target});
  return all;
}
bool any(const KernelKey&) { return true; }
bool of_blocks(const KernelKey& key) { return key.format == Format::Block; }
bool may_replace(const KernelKey& key) {
  return key.operation == Operation::Fwd || key.operation == Operation::GradW;
}

std::string name_of(const testing::TestParamInfo<KernelOnTarget>& p) {
  return p.param.target.name + "_" + std::string(p.param.kernel.name);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, FastKernel, testing::ValuesIn(fast_kernels(any)), name_of);
INSTANTIATE_TEST_SUITE_P(EveryTarget, FastBlockKernel, testing::ValuesIn(fast_kernels(of_blocks)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(EveryTarget, FastReplacing, testing::ValuesIn(fast_kernels(may_replace)),
                         name_of);

}  // namespace
}  // namespace tessera::test
