// Tensors against dense arrays that know nothing of them.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"

namespace tessera::arrays {
namespace {

using test::Shape;

// A view by its plain meaning: for each of its places, row-major, the place of the original.
struct Truth {
  Shape shape;
  std::vector<std::int64_t> places;
};

Truth whole(const Shape& shape) {
  Truth truth{shape, {}};
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  for (std::int64_t i = 0; i < size; ++i) truth.places.push_back(i);
  return truth;
}

// The part with indices in `range` along `axis`.
Truth part(const Truth& from, std::size_t axis, Range range) {
  Truth truth{from.shape, {}};
  truth.shape[axis] = range.size();
  std::int64_t inner = 1;
  for (std::size_t d = axis + 1; d < from.shape.size(); ++d) inner *= from.shape[d];
  for (std::size_t i = 0; i < from.places.size(); ++i) {
    const std::int64_t at = std::int64_t(i) / inner % from.shape[axis];
    if (at >= range.begin && at < range.end) truth.places.push_back(from.places[i]);
  }
  return truth;
}

// One random selector list; `truth` follows it.
std::vector<Selector> random_selectors(Truth& truth, Random& random) {
  std::vector<Selector> selectors;
  Truth next = truth;
  Shape shape;
  auto kept = static_cast<std::int64_t>(truth.shape.size());
  for (std::size_t d = 0; d < truth.shape.size(); ++d) {
    const std::int64_t n = truth.shape[d];
    if (random.below(5) == 0) selectors.push_back(NewAxis{}), shape.push_back(1), ++kept;
    const std::int64_t kind = random.below(4);
    if (kind == 0 && kept > 2) {
      const std::int64_t at = random.below(n);
      selectors.push_back(Point{random.below(2) == 0 ? at : at - n});
      next = part(next, d, {at, at + 1});
      --kept;
      continue;
    }
    if (kind == 1) {
      const std::int64_t begin = random.below(n), end = begin + 1 + random.below(n - begin);
      selectors.push_back(Interval{begin, end});
      next = part(next, d, {begin, end});
    } else {
      selectors.push_back(All{});
    }
    shape.push_back(next.shape[d]);
  }
  truth = {shape, next.places};
  return selectors;
}

template <class T>
void expect_shows(const CooTensor<T>& view, const Truth& truth, const std::vector<T>& dense) {
  ASSERT_EQ(view.shape(), truth.shape);
  std::vector<T> expected;
  std::int64_t nonzeros = 0;
  for (const std::int64_t place : truth.places) {
    expected.push_back(dense[std::size_t(place)]);
    nonzeros += dense[std::size_t(place)] != T(0);
  }
  EXPECT_EQ(to_dense_values(view), expected);
  EXPECT_EQ(view.nnz(), nonzeros);
}

TEST(CooRandom, ViewsOfViewsShowAndPutWhatADenseArrayWould) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Random random(seed);
    const Shape shape = seed % 2 == 0 ? Shape{5, 4, 3, 2} : Shape{7, 1, 11};
    std::vector<double> dense(whole(shape).places.size());
    CooTensor<double> original(shape);
    original.sort_by(seed % 3 == 0 ? (shape.size() == 4 ? Shape{3, 1, 0, 2} : Shape{2, 0, 1})
                                   : original.order());
    for (int step = 0; step < 12; ++step) {
      Truth truth = whole(shape);
      CooTensor<double> view = original;
      for (std::int64_t depth = random.below(4); depth > 0; --depth)
        view = view.select(random_selectors(truth, random));
      for (int puts = 0; puts < 8; ++puts) {
        std::int64_t at = random.below(std::int64_t(truth.places.size())), rest = at;
        Shape index(truth.shape.size());
        for (std::size_t d = index.size(); d-- > 0; rest /= truth.shape[d])
          index[d] = rest % truth.shape[d];
        const double value = double(random.below(4));
        dense[std::size_t(truth.places[std::size_t(at)])] = value;
        view.put(index, value);
        if (puts % 3 == 0) {
          EXPECT_EQ(view.get(index), value);
        }
        EXPECT_EQ(view.layout().to_view(view.layout().to_physical(index)), index);
      }
      expect_shows(view, truth, dense);
    }
    expect_shows(original, whole(shape), dense);
  }
}

TEST(CooRandom, ManyPutsAreMergedWithoutALossAndStayWithinTheirBytes) {
  Random random(11);
  CooTensor<float> big({200, 100, 50});
  std::map<std::int64_t, float> truth;
  for (int i = 0; i < 30000; ++i) {
    const std::int64_t at = random.below(40000) * 25;
    const float value = static_cast<float>(random.below(3));
    big.put({at / 5000, at / 50 % 100, at % 50}, value);
    truth[at] = value;
  }
  std::erase_if(truth, [](const auto& entry) { return entry.second == 0; });
  std::vector<float> expected;
  for (const auto& entry : truth) expected.push_back(entry.second);
  EXPECT_EQ(big.values(), expected);
  const std::int64_t nnz = big.nnz();
  EXPECT_LE(big.bytes().value, coo_bytes(nnz + nnz / 8 + 16, 3, 4).value);
}

TEST(CooBytes, TheThesisExampleFitsInTwoGigabytesSortedAndAtRest) {
  EXPECT_EQ(coo_bytes(100'000'000, 3, 4), Bytes(1'600'000'000));
  EXPECT_LE(coo_bytes(100'000'000, 3, 4).value / 8 * 9, 2'000'000'000);  // after puts
  Random random(3);
  const std::int64_t nnz = 100'000;  // the same shape, a thousandth of the entries
  std::vector<std::int32_t> indices;
  for (std::int64_t k = 0; k < nnz; ++k) {
    indices.push_back(static_cast<std::int32_t>(random.below(10000)));
    indices.push_back(static_cast<std::int32_t>(k % 10000));
    indices.push_back(static_cast<std::int32_t>(k / 10000));
  }
  const CooTensor<float> example({10000, 10000, 100}, indices, std::vector<float>(nnz, 1));
  EXPECT_TRUE(example.is_settled());
  EXPECT_EQ(example.bytes(), coo_bytes(nnz, 3, 4));
}

}  // namespace
}  // namespace tessera::arrays
