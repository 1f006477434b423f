#include "tessera/arrays/mapped/mapping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using Indices = std::vector<std::int64_t>;

// Calls each(index) for every index of a shape, row-major.
template <class Each>
void for_each_index(const Indices& shape, Each each) {
  std::int64_t elements = 1;
  for (const std::int64_t length : shape) elements *= length;
  for (std::int64_t i = 0; i < elements; ++i) {
    Indices index(shape.size());
    std::int64_t at = i;
    for (std::size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = at % shape[d];
    each(index);
  }
}

// Every way to cut `rank` axes into at most three parts.
std::vector<Indices> cuts(std::int64_t rank) {
  std::vector<Indices> result = {{}};
  for (std::int64_t a = 1; a < rank; ++a) {
    result.push_back({a});
    for (std::int64_t b = a + 1; b < rank; ++b) result.push_back({a, b});
  }
  return result;
}

// The definition: the indices of the dimensions of a part, read as digits.
Indices digits(const Indices& index, const Indices& shape, const Indices& dimensions, Indices cut) {
  Indices place;
  cut.push_back(std::ssize(shape));
  std::size_t d = 0;
  for (const std::int64_t end : cut) {
    place.push_back(0);
    for (; std::ssize(place) > 0 && std::int64_t(d) < end; ++d)
      place.back() =
          place.back() * shape[std::size_t(dimensions[d])] + index[std::size_t(dimensions[d])];
  }
  return place;
}

TEST(Mapping, DM_01_StorageShape) {
  EXPECT_EQ(Mapping({3, 4, 5}, {2, 1, 0}, {1}).storage_shape(), (Indices{5, 12}));
}

TEST(Mapping, DM_02_DimensionsAndStridesOfTheStorageAxes) {
  const Mapping mapping({2, 3, 4, 5, 6}, {2, 4, 1, 3, 0}, {3});
  ASSERT_EQ(mapping.axes().size(), 2u);
  EXPECT_EQ(mapping.axes()[0].terms, (std::vector<MapTerm>{{2, 18}, {4, 3}, {1, 1}}));
  EXPECT_EQ(mapping.axes()[1].terms, (std::vector<MapTerm>{{3, 2}, {0, 1}}));
}

TEST(Mapping, DM_06_AllTwelveSplitsOfACube) {
  Indices dimensions = {0, 1, 2};
  int splits = 0;
  do {
    for (const std::int64_t cut : {1, 2}) {
      const Mapping mapping({2, 3, 4}, dimensions, {cut});
      ++splits;
      for_each_index({2, 3, 4}, [&](const Indices& index) {
        EXPECT_EQ(mapping.reduce(index), digits(index, {2, 3, 4}, dimensions, {cut}));
      });
    }
  } while (std::ranges::next_permutation(dimensions).found);
  EXPECT_EQ(splits, 12);
  // Rows along [2], columns along [1, 0]: what row 0 shows.
  const Mapping turned({2, 3, 4}, {2, 1, 0}, {1});
  const std::vector<Indices> row = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0},
                                    {1, 1, 0}, {0, 2, 0}, {1, 2, 0}};
  for (std::int64_t c = 0; c < 6; ++c)
    EXPECT_EQ(turned.promote(Indices{0, c}), row[std::size_t(c)]);
}

TEST(Mapping, DM_09_PromoteIsTheInverseOfReduceForEveryOrderAndCut) {
  std::int64_t mappings = 0;
  for (const Indices& shape : {Indices{1}, {5}, {3, 4}, {3, 4, 2}, {3, 4, 5, 2, 1}}) {
    Indices dimensions(shape.size());
    std::iota(dimensions.begin(), dimensions.end(), 0);
    do {
      for (const Indices& cut : cuts(std::ssize(shape))) {
        const Mapping mapping(shape, dimensions, cut);
        ++mappings;
        std::set<Indices> places;
        for_each_index(shape, [&](const Indices& index) {
          const Indices place = mapping.reduce(index);
          ASSERT_EQ(mapping.promote(place), index);
          places.insert(place);
        });
        std::int64_t elements = 1;
        for (const std::int64_t length : mapping.storage_shape()) elements *= length;
        ASSERT_EQ(std::ssize(places), elements);
      }
    } while (std::ranges::next_permutation(dimensions).found);
  }
  EXPECT_EQ(mappings, 1 + 1 + 2 * 2 + 6 * 4 + 120 * 11);
}

TEST(Mapping, DM_10_SolvesOverlappingStrides) {
  for_each_index({12, 2}, [](const Indices& index) {
    EXPECT_EQ(solve_index(Indices{2, 1}, Indices{12, 2}, 2 * index[0] + index[1]), index);
  });
  EXPECT_EQ(solve_index(Indices{2, 1}, Indices{12, 2}, 24), std::nullopt);
  EXPECT_EQ(solve_index(Indices{2, 1}, Indices{12, 2}, -1), std::nullopt);
}

// Every target of small strides, overlapping and negative ones too, by trying all indices.
TEST(Mapping, SolvesEverySmallSystem) {
  for (const std::int64_t a : {-5, -3, -2, -1, 1, 2, 3, 5})
    for (const std::int64_t b : {-4, -2, -1, 1, 2, 4})
      for (const std::int64_t c : {-1, 3}) {
        const Indices strides = {a, b, c}, shape = {3, 2, 4};
        std::set<std::int64_t> reached;
        for_each_index(shape,
                       [&](const Indices& i) { reached.insert(a * i[0] + b * i[1] + c * i[2]); });
        for (std::int64_t target = -40; target <= 40; ++target) {
          const auto index = solve_index(strides, shape, target);
          ASSERT_EQ(index.has_value(), reached.contains(target));
          const Indices& found = index.value_or(Indices(3));
          const std::int64_t sum = a * found[0] + b * found[1] + c * found[2];
          ASSERT_EQ(sum, index ? target : 0);
        }
      }
}

// Slices of slices of swapped axes: places are those of the indices that Python would take.
TEST(Mapping, SlicesAndSwapsKeepReduceAndPromoteInverse) {
  const Mapping whole({4, 5, 6}, {2, 0, 1}, {1});
  const Mapping part = whole.select({Slice{{}, {}, -2}, Slice{1, 5}, Slice{{}, {}, 3}})
                           .swapped(0, 2)
                           .select({All{}, Slice{{}, {}, -1}, Point{-1}});
  EXPECT_EQ(part.shape(), (Indices{2, 4}));
  std::set<Indices> shown;
  for_each_index(part.shape(), [&](const Indices& i) {
    const Indices place = part.reduce(i);
    EXPECT_EQ(place, whole.reduce(Indices{1, 4 - i[1], 3 * i[0]}));
    EXPECT_EQ(part.promote(place), i);
    shown.insert(place);
  });
  for_each_index(whole.storage_shape(), [&](const Indices& place) {
    EXPECT_EQ(part.promote(place).has_value(), shown.contains(place));
  });
}

TEST(Mapping, TakesRanksZeroAndOneAndEmptyAxes) {
  EXPECT_EQ(Mapping({}).storage_shape(), (Indices{1}));
  EXPECT_EQ(Mapping({7}).storage_shape(), (Indices{7}));
  EXPECT_EQ(Mapping({2, 3, 4}).storage_shape(), (Indices{6, 4}));
  EXPECT_EQ(Mapping({2, 0, 4}, {0, 1, 2}, {}).storage_shape(), (Indices{0}));
  EXPECT_EQ(Mapping({2, 0, 4}, {0, 1, 2}, {}).promote(Indices{0}), std::nullopt);
}

TEST(SolveIndex, ReachesTheEndsOf64BitsAndNothingInAnEmptyAxis) {
  EXPECT_EQ(solve_index(Indices{INT64_MIN, INT64_MAX}, Indices{2, 2}, -1), (Indices{1, 1}));
  EXPECT_EQ(solve_index(Indices{INT64_MAX, INT64_MAX}, Indices{2, 2}, INT64_MIN), std::nullopt);
  EXPECT_EQ(solve_index(Indices{INT64_MIN}, Indices{0}, 0), std::nullopt);
}

// Without a bound the search would try up to 2^60 pairs of indices.
TEST(SolveIndex, EndsWhereStridesMakeTheSearchExponential) {
  const Indices lengths = {1 << 30, 1 << 30, 1 << 30};
  EXPECT_EQ(solve_index(Indices{6, 4, 2}, lengths, 1'000'000'001), std::nullopt);
  EXPECT_EQ(solve_index(Indices{6, 4, -5}, lengths, 1'000'000'001), (Indices{0, 250'000'004, 3}));
  const std::int64_t prime = 1'000'000'007;
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"1048576 steps"}, [&] {
    solve_index(Indices{prime, prime - 1, 3}, Indices{1 << 30, 1 << 30, 2},
                prime * (prime / 2) + 4);
  }));
}

TEST(MappingRefuses, OrdersCutsAndIndicesThatCannotBe) {
  const auto refused = [](const std::string& text, const std::function<void()>& action) {
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {text}, action));
  };
  refused("[0, 0]", [] { Mapping({2, 3}, {0, 0}, {1}); });
  refused("[0]", [] { Mapping({2, 3}, {0}, {1}); });
  refused("[0, 2]", [] { Mapping({2, 3}, {0, 2}, {1}); });
  refused("[0]", [] { Mapping({2, 3}, {0, 1}, {0}); });
  refused("[2]", [] { Mapping({2, 3}, {0, 1}, {2}); });
  refused("[2, 1]", [] { Mapping({2, 3, 4}, {0, 1, 2}, {2, 1}); });
  refused("index 2", [] { Mapping({2, 3}).reduce(Indices{2, 0}); });
  refused("index -4", [] { Mapping({2, 3}).reduce(Indices{0, -4}); });
  refused("1 numbers", [] { Mapping({2, 3}).reduce(Indices{0}); });
  refused("3 numbers", [] { Mapping({2, 3}).promote(Indices{0, 0, 0}); });
  refused("3 selectors", [] { Mapping({2, 3}).select({All{}, All{}, All{}}); });
  refused("index 3", [] { Mapping({2, 3}).select({All{}, Point{3}}); });
  refused("stride 0", [] { solve_index(Indices{0}, Indices{1}, 0); });
  refused("length 1 is -9223372036854775808",
          [] { solve_index(Indices{1, 1}, Indices{1, INT64_MIN}, 0); });
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"reach of a stride"},
                     [] { solve_index(Indices{INT64_MIN, 1}, Indices{3, 2}, 0); }));
  refused("1 strides", [] { solve_index(Indices{1}, Indices{1, 2}, 0); });
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {}, [&] { Mapping({huge, huge}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"dimension 1"}, [] { Mapping({2, -3}); }));
}

}  // namespace
}  // namespace tessera::arrays
