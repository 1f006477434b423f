#include "tessera/codelets/place_sums.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

// A list of places with two at one place, and small whole numbers, whose sums are exact. Columns
// 250 to 259 have no places.
template <class T, class Index, class Position = Index>
struct PlaceList {
  static constexpr std::int64_t kRows = 9;
  std::vector<Index> row, col;
  std::vector<Position> begin;
  std::vector<T> values, in;
  std::int64_t z;

  explicit PlaceList(std::int64_t columns_of_in, std::int64_t columns = 13) : z(columns_of_in) {
    for (std::int64_t c = 0; c < columns; ++c) {
      begin.push_back(Position(row.size()));
      for (std::int64_t n = 0; n < c % 4 && c / 10 != 25; ++n) {
        row.push_back(Index((5 * c + n / 2) % kRows));
        col.push_back(Index(c));
        values.push_back(T(float((3 * c + n) % 7 - 3)));
      }
    }
    begin.push_back(Position(row.size()));
    for (std::int64_t i = 0; i < columns * z; ++i) in.push_back(T(float(5 * i % 11 - 5)));
  }
  std::int64_t places() const { return std::ssize(row); }
  std::vector<float> expected(Range i) const {
    std::vector<float> out(std::size_t(kRows * z), 2.0f);
    for (auto p = i.begin; p < i.end; ++p)
      for (std::int64_t n = 0; n < z; ++n)
        out[std::size_t(row[std::size_t(p)] * z + n)] +=
            float(values[std::size_t(p)]) * float(in[std::size_t(col[std::size_t(p)] * z + n)]);
    return out;
  }
  void expect_same(Range i) const {
    std::vector<float> by_place(std::size_t(kRows * z), 2.0f), by_column = by_place;
    ScatteredPlaces<T, Index> sums{row.data(), values.data(), in.data(), z, by_place.data(), z, z};
    scatter_places(sums, col.data(), i);
    EXPECT_EQ(by_place, expected(i));
    sums.out = by_column.data();
    scatter_columns(sums, std::span<const Position>(begin), i);
    EXPECT_EQ(by_column, expected(i));
  }
};

template <class T, class Index>
void expect_scattered() {
  for (const std::int64_t z : {1, 3, 16, 33, 64, 130}) {
    SCOPED_TRACE(z);
    const PlaceList<T, Index> list(z);
    for (const Range i : {Range{0, list.places()}, Range{3, list.places() - 4}, Range{2, 2}})
      list.expect_same(i);
  }
}

// More columns than are laid out at once, from and to any place.
template <class T, class Position>
void expect_many_columns() {
  const PlaceList<T, std::int32_t, Position> list(1, 600);
  const std::int64_t all = list.places();
  for (const Range i : {Range{0, all}, Range{1, all - 1}, Range{all / 2 + 1, all}, Range{5, 6}})
    list.expect_same(i);
}

TEST(ScatteredPlaces, AreAddedInAnyRangeOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    expect_scattered<float, std::int32_t>();
    expect_scattered<float, std::int64_t>();
    expect_scattered<Half, std::int32_t>();
    expect_scattered<Half, std::int64_t>();
    expect_scattered<BFloat16, std::int32_t>();
    expect_scattered<BFloat16, std::int64_t>();
    expect_many_columns<float, std::int32_t>();
    expect_many_columns<float, std::int64_t>();
    expect_many_columns<Half, std::int32_t>();
  }
}

// Rows of one column have any lengths and follow one another; those of a few places are added
// together. The bits are those of the reference, also of rows without places, of -0 and of NaN.
template <class T, class Index>
void expect_one_column(std::int64_t longest, bool replaces, std::size_t stride = 1) {
  constexpr std::int64_t kColumns = 97;
  Random random(std::uint64_t(longest) + 7);
  std::vector<std::int64_t> begin{0};
  std::vector<Index> col;
  std::vector<T> values, in;
  for (std::int64_t r = 0; r < 303; ++r) {
    for (std::int64_t n = random.below(longest + 1); n > 0; --n) {
      col.push_back(Index(random.below(kColumns)));
      values.push_back(T(random.below(9) == 0 ? -0.0f : float(random.unit() - 0.5)));
    }
    begin.push_back(std::ssize(col));
  }
  for (std::int64_t c = 0; c < kColumns; ++c)
    in.push_back(T(c == 5 ? std::numeric_limits<float>::infinity() : float(random.unit() - 0.5)));
  std::vector<float> expected(begin.size() - 1, -0.0f), out(expected.size() * stride, -0.0f);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const auto first = std::size_t(begin[r]);
    const float sum = internal::one_column_sum<float>(
        values.data() + first, begin[r + 1] - begin[r],
        [&](std::int64_t i) { return in[std::size_t(col[first + std::size_t(i)])]; });
    expected[r] = (replaces ? 0.0f : expected[r]) + sum;
  }
  place_sums(PlaceSums<T, Index, std::int64_t>{.block = {1, 1},
                                               .row_begin = begin,
                                               .col = col.data(),
                                               .values = values.data(),
                                               .in = in.data(),
                                               .in_stride = 1,
                                               .out = out.data(),
                                               .out_stride = std::int64_t(stride),
                                               .z = 1,
                                               .replaces = replaces});
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const float sum = out[r * stride];
    if (std::isnan(sum) && std::isnan(expected[r])) continue;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(sum), std::bit_cast<std::uint32_t>(expected[r]))
        << "row " << r << " of " << begin[r + 1] - begin[r];
  }
}

TEST(PlaceSums, OfOneColumnHaveTheBitsOfTheReferenceOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    for (const std::int64_t longest : {1, 4, 8, 9, 16, 17, 40, 200})
      for (const bool replaces : {false, true}) {
        expect_one_column<float, std::int32_t>(longest, replaces);
        expect_one_column<float, std::int32_t>(longest, replaces, 3);
        expect_one_column<float, std::int64_t>(longest, replaces);
        expect_one_column<Half, std::int32_t>(longest, replaces);
      }
  }
}

// One column of blocks has the bits that the elements of the blocks have.
template <class T>
void expect_blocks_as_elements(BlockShape block, bool replaces) {
  constexpr std::int64_t kBlockRows = 9, kBlockColumns = 11;
  Random random(std::uint64_t(block.rows * 100 + block.cols));
  std::vector<std::int64_t> begin{0}, begin_elements{0};
  std::vector<std::int32_t> col, col_elements;
  std::vector<T> values, elements, in;
  const auto number = [&] { return T(float(random.unit() - 0.5)); };
  for (std::int64_t r = 0; r < kBlockRows; ++r) {
    for (std::int64_t n = r % 6; n > 0; --n)
      col.push_back(std::int32_t(random.below(kBlockColumns)));
    begin.push_back(std::ssize(col));
  }
  for (std::int64_t i = std::ssize(col) * block.area(); i > 0; --i) values.push_back(number());
  for (std::int64_t c = 0; c < kBlockColumns * block.cols; ++c) in.push_back(number());
  for (std::int64_t r = 0; r < kBlockRows * block.rows; ++r) {
    const auto row = std::size_t(r / block.rows);
    for (std::int64_t b = begin[row]; b < begin[row + 1]; ++b)
      for (std::int64_t c = 0; c < block.cols; ++c) {
        col_elements.push_back(std::int32_t(col[std::size_t(b)] * block.cols + c));
        elements.push_back(values[std::size_t((b * block.rows + r % block.rows) * block.cols + c)]);
      }
    begin_elements.push_back(std::ssize(col_elements));
  }
  const auto sums = [&](BlockShape shape, auto& rows, auto& columns, auto& numbers) {
    std::vector<float> out(std::size_t(kBlockRows * block.rows) * 2, 0.5f);
    place_sums(PlaceSums<T, std::int32_t, std::int64_t>{.block = shape,
                                                        .row_begin = rows,
                                                        .col = columns.data(),
                                                        .values = numbers.data(),
                                                        .in = in.data(),
                                                        .in_stride = 1,
                                                        .out = out.data(),
                                                        .out_stride = 2,
                                                        .z = 1,
                                                        .replaces = replaces});
    return out;
  };
  EXPECT_EQ(sums(block, begin, col, values), sums({1, 1}, begin_elements, col_elements, elements))
      << block.rows << " x " << block.cols;
}

TEST(PlaceSums, OfOneColumnOfBlocksHaveTheBitsOfTheirElementsOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    for (const BlockShape block : {BlockShape{4, 4},
                                   {8, 8},
                                   {16, 16},
                                   {32, 32},
                                   {1, 4},
                                   {3, 8},
                                   {5, 16},
                                   {2, 48},
                                   {70, 8},
                                   {80, 16}})
      for (const bool replaces : {false, true}) {
        expect_blocks_as_elements<float>(block, replaces);
        expect_blocks_as_elements<Half>(block, replaces);
        expect_blocks_as_elements<BFloat16>(block, replaces);
      }
  }
}

// Several columns are added up place after place. There are more rows than positions that are
// converted at once, and lengths differ, so that rows side by side end at different places.
template <class T>
void expect_several_columns(std::int64_t z, std::int64_t gap, bool replaces) {
  constexpr std::int64_t kRows = 300, kColumns = 61;
  Random random(std::uint64_t(z) + 11);
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> col;
  std::vector<T> values, in;
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t n = random.below(9); n > 0; --n) {
      col.push_back(std::int32_t(random.below(kColumns)));
      values.push_back(T(float(random.unit() - 0.5)));
    }
    begin.push_back(std::ssize(col));
  }
  const std::int64_t stride = z + gap;
  for (std::int64_t i = 0; i < kColumns * stride; ++i) in.push_back(T(float(random.unit() - 0.5)));
  std::vector<float> expected(std::size_t(kRows * stride), 0.5f), out = expected;
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < z; ++c) {
      float& sum = expected[std::size_t(r * stride + c)];
      if (replaces) sum = 0;
      for (std::int64_t i = begin[std::size_t(r)]; i < begin[std::size_t(r) + 1]; ++i)
        sum = internal::add_product(sum, values[std::size_t(i)],
                                    in[std::size_t(col[std::size_t(i)] * stride + c)]);
    }
  place_sums(PlaceSums<T, std::int32_t, std::int64_t>{.block = {1, 1},
                                                      .row_begin = begin,
                                                      .col = col.data(),
                                                      .values = values.data(),
                                                      .in = in.data(),
                                                      .in_stride = stride,
                                                      .out = out.data(),
                                                      .out_stride = stride,
                                                      .z = z,
                                                      .replaces = replaces});
  EXPECT_EQ(out, expected) << "z " << z << ", gap " << gap;
}

TEST(PlaceSums, OfSeveralColumnsAddPlaceAfterPlaceOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    for (const std::int64_t z : {2, 3, 4, 7, 8, 12, 16, 17, 33, 64, 100, 130})
      for (const std::int64_t gap : {0, 5})
        for (const bool replaces : {false, true}) {
          expect_several_columns<float>(z, gap, replaces);
          expect_several_columns<Half>(z, gap, replaces);
          expect_several_columns<BFloat16>(z, gap, replaces);
        }
  }
}

}  // namespace
}  // namespace tessera::codelets
