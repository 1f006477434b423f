#include "tessera/arrays/tensor/internal/coo_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/arrays/tensor/internal/sort_positions.hpp"
#include "tessera/base/radix_sort.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"

namespace tessera::arrays::internal {
namespace {

using test::Shape;

// Positions sorted by the standard library.
std::vector<std::uint64_t> sorted_truth(const std::vector<std::int32_t>& indices, std::size_t count,
                                        const Shape& order) {
  std::vector<std::uint64_t> positions(count);
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  std::stable_sort(positions.begin(), positions.end(), [&](std::uint64_t a, std::uint64_t b) {
    for (const std::int64_t d : order) {
      const auto ia = indices[a * order.size() + d], ib = indices[b * order.size() + d];
      if (ia != ib) return ia < ib;
    }
    return false;
  });
  return positions;
}

TEST(SortPositions, AgreesWithTheStandardSortForEveryOrderAndLength) {
  constexpr std::int64_t kMax = 2147483647;
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{kMax, kMax, kMax}, Shape{1000, 1, 70000}}) {
    Shape order(shape.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    do {
      for (const std::size_t count : {0u, 1u, 2u, 47u, 48u, 49u, 700u}) {
        SCOPED_TRACE(testing::Message() << "seed=5 count=" << count << " first=" << order[0]);
        Random random(5);
        std::vector<std::int32_t> indices;
        for (std::size_t k = 0; k < count; ++k)
          for (const std::int64_t length : shape)  // few values, so that there are equal ones
            indices.push_back(
                static_cast<std::int32_t>(length - 1 - random.below(length) % 5 * (length / 5)));
        EXPECT_EQ(sort_positions(indices, count, shape, order),
                  sorted_truth(indices, count, order));
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(RadixSort, KeepsTheOrderOfEqualKeysAndUsesAllBits) {
  using Entry = std::pair<std::uint64_t, int>;
  const auto key = [](const Entry& entry) { return entry.first; };
  for (const std::uint64_t spread : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    Random random(9);
    std::vector<Entry> entries, scratch;
    for (int i = 0; i < 500; ++i) entries.emplace_back(random.bits() % spread, i);
    std::vector<Entry> expected = entries;
    std::sort(expected.begin(), expected.end());
    radix_sort(entries, scratch, 64, key);
    EXPECT_EQ(entries, expected);
  }
}

TEST(CooStore, NarrowsByBinarySearchAsFarAsIndicesAreFixed) {
  CooStore<float> store({4, 5, 6});
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < 120; ++i) indices.insert(indices.end(), {i / 30, i / 6 % 5, i % 6});
  store.take(indices, std::vector<float>(120, 1));
  const TensorLayout all = TensorLayout::whole(store.shape);
  EXPECT_EQ(store.narrow(all), (Range{0, 120}));
  EXPECT_EQ(store.narrow(select_layout(all, {Point{2}}).layout), (Range{60, 90}));
  EXPECT_EQ(store.narrow(select_layout(all, {Point{2}, Interval{1, 3}}).layout), (Range{66, 78}));
  EXPECT_EQ(store.narrow(select_layout(all, {Interval{1, 3}, Point{0}}).layout), (Range{30, 90}));
  store.wanted = {2, 0, 1};
  store.settle();
  EXPECT_EQ(store.narrow(select_layout(all, {Point{1}, All{}, Point{5}}).layout),
            (Range{105, 110}));
}

TEST(CooStore, RepeatedPutsDoNotGrowWithoutEnd) {
  CooStore<float> store({10, 10});
  const std::vector<std::int32_t> a = {5, 5}, b = {1, 1};
  for (int i = 0; i < 100000; ++i) store.put((i % 2 == 0 ? a : b).data(), float(i + 1));
  EXPECT_LT(store.values.size(), 2100u);
  store.settle();
  EXPECT_EQ(store.values, (std::vector<float>{100000, 99999}));
  EXPECT_LE(store.bytes().value, coo_bytes(2 + 16, 2, 4).value);
}

}  // namespace
}  // namespace tessera::arrays::internal
