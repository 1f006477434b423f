#include "tessera/codelets/place_sums.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

// A list of places with two at one place, and small whole numbers, whose sums are exact.
template <class T, class Index>
struct PlaceList {
  static constexpr std::int64_t kRows = 9, kColumns = 13;
  std::vector<Index> row, col, begin;
  std::vector<T> values, in;
  std::int64_t z;

  explicit PlaceList(std::int64_t columns_of_in) : z(columns_of_in) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      begin.push_back(Index(row.size()));
      for (std::int64_t n = 0; n < c % 4; ++n) {
        row.push_back(Index((5 * c + n / 2) % kRows));
        col.push_back(Index(c));
        values.push_back(T(float((3 * c + n) % 7 - 3)));
      }
    }
    begin.push_back(Index(row.size()));
    for (std::int64_t i = 0; i < kColumns * z; ++i) in.push_back(T(float(5 * i % 11 - 5)));
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
    scatter_columns(sums, begin.data(), Range{0, kColumns}, i);
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
  }
}

}  // namespace
}  // namespace tessera::codelets
