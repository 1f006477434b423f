#include "tessera/codelets/packed_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

// A random matrix in both forms of packed rows, and an operand.
template <class T>
struct PackedCase {
  std::int64_t rows, cols, z, stride;
  std::vector<std::int64_t> row_begin{0}, col;
  std::vector<T> values, in;
  std::vector<std::uint32_t> masks;
  std::vector<std::uint8_t> counts, offsets;

  PackedCase(Random& random, std::int64_t rows_, std::int64_t cols_, std::int64_t z_,
             double density)
      : rows(rows_),
        cols(cols_),
        z(z_),
        stride(round_up(cols_, kPackedSegment)),
        in(std::size_t(z_ * stride)),
        masks(std::size_t(rows_ * ceil_div(cols_, kPackedChunk))),
        counts(std::size_t(rows_ * ceil_div(cols_, kPackedSegment))) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c)
        if (random.unit() < density) add(r, c, float(2 * random.unit() - 1));
      row_begin.push_back(std::ssize(col));
    }
    // Padding may have any content.
    values.resize(col.size() + kPackedPadding, T(std::numeric_limits<float>::quiet_NaN()));
    offsets.resize(col.size() + kPackedPadding, 0xff);
    for (std::int64_t j = 0; j < z; ++j)
      for (std::int64_t c = 0; c < cols; ++c)
        in[std::size_t(j * stride + c)] = T(float(2 * random.unit() - 1));
  }
  void add(std::int64_t r, std::int64_t c, float value) {
    col.push_back(c);
    values.push_back(T(value));
    masks[std::size_t(r * ceil_div(cols, kPackedChunk) + c / kPackedChunk)] |= std::uint32_t{1}
                                                                               << c % kPackedChunk;
    ++counts[std::size_t(r * ceil_div(cols, kPackedSegment) + c / kPackedSegment)];
    offsets.push_back(std::uint8_t(c % kPackedSegment));
  }
  PackedSums<T> sums(PackedPositions positions, std::vector<float>& out) const {
    out.assign(std::size_t(rows * kMostPackedColumns), -7.0f);
    return {.positions = positions,
            .rows = rows,
            .cols = cols,
            .row_begin = row_begin.data(),
            .values = values.data(),
            .masks = masks.data(),
            .counts = counts.data(),
            .offsets = offsets.data(),
            .in = in.data(),
            .in_stride = stride,
            .out = out.data(),
            .out_stride = kMostPackedColumns,
            .z = z};
  }
  void expect_right(const std::vector<float>& out) const {
    constexpr double kUnit = 0x1p-24;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < kMostPackedColumns; ++j) {
        const float got = out[std::size_t(r * kMostPackedColumns + j)];
        double sum = 0, size = 0;
        for (auto i = row_begin[std::size_t(r)]; j < z && i < row_begin[std::size_t(r) + 1]; ++i) {
          const double term = double(float(values[std::size_t(i)])) *
                              float(in[std::size_t(j * stride + col[std::size_t(i)])]);
          sum += term;
          size += std::abs(term);
        }
        if (j < z)
          ASSERT_NEAR(got, sum, double(cols + 2) * kUnit * size) << "row " << r << ", column " << j;
        else
          ASSERT_EQ(got, -7.0f) << "a column beyond z was written";
      }
  }
};

template <class T>
void expect_all_forms(Random& random) {
  for (const double density : {0.02, 0.1, 0.5, 0.9})
    for (const std::int64_t cols : {0, 1, 31, 32, 255, 257, 700, 3100, 13000}) {
      const PackedCase<T> c(random, 1 + random.below(19), cols,
                            1 + random.below(kMostPackedColumns), density);
      SCOPED_TRACE(testing::Message()
                   << c.rows << " x " << cols << ", z " << c.z << ", density " << density);
      for (const auto positions : {PackedPositions::Bits, PackedPositions::Bytes}) {
        std::vector<float> plain, fast;
        packed_sums_plainly(c.sums(positions, plain));
        c.expect_right(plain);
        packed_sums(c.sums(positions, fast));
        ASSERT_EQ(fast, plain);
      }
    }
}

TEST(PackedRows, HaveTheBitsOfTheirSlowTwinOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    Random random(20261125);
    expect_all_forms<Half>(random);
    expect_all_forms<BFloat16>(random);
  }
}

TEST(PackedRows, SumsOfSignsAreExact) {
  Random random(5);
  PackedCase<BFloat16> c(random, 9, 1000, 3, 0.25);
  for (BFloat16& value : c.values) value = BFloat16(float(value) < 0 ? -1.0f : 1.0f);
  for (BFloat16& value : c.in) value = BFloat16(float(value) < 0 ? -1.0f : 1.0f);
  for (const auto positions : {PackedPositions::Bits, PackedPositions::Bytes}) {
    std::vector<float> got;
    packed_sums(c.sums(positions, got));
    for (std::int64_t r = 0; r < c.rows; ++r)
      for (std::int64_t j = 0; j < c.z; ++j) {
        float sum = 0;
        for (auto i = c.row_begin[std::size_t(r)]; i < c.row_begin[std::size_t(r) + 1]; ++i)
          sum += float(c.values[std::size_t(i)]) *
                 float(c.in[std::size_t(j * c.stride + c.col[std::size_t(i)])]);
        EXPECT_EQ(got[std::size_t(r * kMostPackedColumns + j)], sum);
      }
  }
}

TEST(PackedRows, LeaveOutWhatIsNotStoredInTheReferenceKernel) {
  Random random(3);
  PackedCase<Half> c(random, 1, 40, 1, 0);
  c.row_begin = {0, 1};
  c.col.clear();
  c.values.clear();
  c.add(0, 7, 2.0f);
  c.values.resize(1 + kPackedPadding);
  c.in[7] = Half(3.0f);
  c.in[8] = Half(std::numeric_limits<float>::infinity());
  std::vector<float> got;
  packed_sums_plainly(c.sums(PackedPositions::Bits, got));
  EXPECT_EQ(got[0], 6.0f);
}

}  // namespace
}  // namespace tessera::codelets
