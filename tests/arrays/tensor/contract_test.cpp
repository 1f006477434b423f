#include "tessera/arrays/tensor/contract.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using test::Shape;

// About `density` of the places hold small whole numbers, so that sums are exact.
CooTensor<double> random_tensor(const Shape& shape, double density, Random& random) {
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  std::vector<std::int32_t> indices;
  std::vector<double> values;
  for (std::int64_t at = 0; at < size; ++at) {
    if (random.unit() >= density) continue;
    std::int64_t rest = at;
    indices.resize(indices.size() + shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d, rest /= shape[shape.size() - d])
      indices[indices.size() - 1 - d] =
          static_cast<std::int32_t>(rest % shape[shape.size() - 1 - d]);
    values.push_back(double(1 + random.below(9)));
  }
  return CooTensor<double>(shape, indices, values);
}

// Every pair of entries, one by one.
CooTensor<double> slow_contract(const CooTensor<double>& a, const Shape& a_dims,
                                const CooTensor<double>& b, const Shape& b_dims) {
  const auto free_dims = [](std::int64_t rank, const Shape& dims) {
    Shape free;
    for (std::int64_t d = 0; d < rank; ++d)
      if (std::count(dims.begin(), dims.end(), d) == 0) free.push_back(d);
    return free;
  };
  const Shape a_free = free_dims(a.rank(), a_dims), b_free = free_dims(b.rank(), b_dims);
  Shape shape;
  for (const auto d : a_free) shape.push_back(a.shape()[std::size_t(d)]);
  for (const auto d : b_free) shape.push_back(b.shape()[std::size_t(d)]);
  CooTensor<double> result(shape);
  const auto ai = a.indices(), bi = b.indices();
  const auto av = a.values(), bv = b.values();
  for (std::size_t i = 0; i < av.size(); ++i)
    for (std::size_t j = 0; j < bv.size(); ++j) {
      const auto* p = ai.data() + i * std::size_t(a.rank());
      const auto* q = bi.data() + j * std::size_t(b.rank());
      bool matches = true;
      for (std::size_t k = 0; k < a_dims.size(); ++k) matches &= p[a_dims[k]] == q[b_dims[k]];
      if (!matches) continue;
      Shape index;
      for (const auto d : a_free) index.push_back(p[d]);
      for (const auto d : b_free) index.push_back(q[d]);
      result.put(index, result.get(index) + av[i] * bv[j]);
    }
  return result;
}

TEST(Contract, AgreesWithEveryPairOfEntriesForEveryChoiceOfDimensions) {
  struct Case {
    Shape a, a_dims, b, b_dims;
  };
  const std::vector<Case> cases = {{{4, 5}, {1}, {5, 3}, {0}},
                                   {{4, 5}, {0}, {4, 3}, {0}},
                                   {{4, 5, 6}, {0}, {4}, {0}},
                                   {{4, 5, 6}, {1}, {5}, {0}},
                                   {{4, 5, 6}, {2}, {6}, {0}},
                                   {{4, 5, 6}, {2, 0}, {6, 7, 4}, {0, 2}},
                                   {{4, 5, 6}, {0, 2}, {6, 4}, {1, 0}},
                                   {{4, 5}, {0, 1}, {4, 5}, {0, 1}},
                                   {{3, 4}, {}, {5}, {}},
                                   {{3, 1, 4}, {1}, {2, 1}, {1}},
                                   {{}, {}, {3}, {}},
                                   {{2, 3, 2, 3}, {3, 1}, {3, 3, 5}, {1, 0}}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const double density : {0.0, 0.3, 1.0}) {
      SCOPED_TRACE(testing::Message() << "case " << i << " density " << density << " seed 4");
      Random random(4);
      auto a = random_tensor(cases[i].a, density, random);
      auto b = random_tensor(cases[i].b, density, random);
      const auto expected = slow_contract(a, cases[i].a_dims, b, cases[i].b_dims);
      EXPECT_EQ(contract(a, cases[i].a_dims, b, cases[i].b_dims), expected);
      EXPECT_EQ(contract(a, cases[i].a_dims, b, cases[i].b_dims).shape(), expected.shape());
      Shape order = a.order();
      std::reverse(order.begin(), order.end());
      a.sort_by(order);
      EXPECT_EQ(contract(a, cases[i].a_dims, b, cases[i].b_dims), expected);
    }
}

TEST(Contract, TakesViewsAndNegativeDimensions) {
  Random random(8);
  const auto a =
      random_tensor({6, 5, 4}, 0.5, random).select({Interval{1, 5}, Point{2}, NewAxis{}});
  const auto b = random_tensor({7, 4}, 0.5, random).select({Interval{2, 6}});
  EXPECT_EQ(contract(a, {-1}, b, {-1}), slow_contract(a, {2}, b, {1}));
}

TEST(Contract, WithADenseOperandIsTheSameAsWithAFullTensor) {
  Random random(6);
  const auto a = random_tensor({5, 6, 7}, 0.3, random);
  for (const Shape& dims : {Shape{0}, Shape{1}, Shape{2}, Shape{2, 0}, Shape{0, 1, 2}}) {
    Shape shape, all;
    for (const auto d : dims)
      all.push_back(std::int64_t(all.size())), shape.push_back(a.shape()[std::size_t(d)]);
    const auto b = random_tensor(shape, 1, random);
    EXPECT_EQ(contract<double>(a, dims, b.values()), contract(a, dims, b, all));
  }
}

TEST(Contract, SumsFarMoreProductsThanItKeeps) {
  const std::vector<double> ones(400 * 400, 1);
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < 160000; ++i) indices.insert(indices.end(), {i / 400, i % 400});
  const CooTensor<double> full({400, 400}, indices, ones);
  const auto row = full.select({Point{0}});
  EXPECT_EQ(contract(row, {1}, full, {0}).values(), std::vector<double>(400, 400));
  EXPECT_EQ(contract(full, {0, 1}, full, {0, 1}).get({}), 160000);
}

TEST(Contract, GivesTheSameBitsInWhateverOrderTheBuffersLie) {
  Random random(12);
  CooTensor<float> a({20, 30, 40});
  for (int i = 0; i < 4000; ++i)
    a.put({random.below(20), random.below(30), random.below(40)}, float(random.unit()));
  const std::vector<float> dense(30, 0.1f);
  const auto expected = contract<float>(a, {1}, dense).values();
  const auto square = contract(a, {0, 1}, a, {0, 1}).values();
  for (const Shape& order : {Shape{2, 1, 0}, Shape{1, 0, 2}}) {
    a.sort_by(order);
    EXPECT_EQ(contract<float>(a, {1}, dense).values(), expected);
    EXPECT_EQ(contract(a, {0, 1}, a, {0, 1}).values(), square);
  }
}

TEST(Contract, RefusesPairsThatDoNotMatch) {
  const CooTensor<double> a({4, 5}), b({5, 4});
  const CooTensor<double> huge({1 << 30, 1 << 30, 1 << 30, 2});
  const auto refuses = [&](const Shape& a_dims, const Shape& b_dims, const char* part) {
    return raises(ErrorCode::InvalidArgument, {part}, [&] { contract(a, a_dims, b, b_dims); });
  };
  EXPECT_TRUE(refuses({0}, {0}, "length 4 and 5"));
  EXPECT_TRUE(refuses({0}, {}, "pairs"));
  EXPECT_TRUE(refuses({2}, {0}, "dimension 2"));
  EXPECT_TRUE(refuses({1, 1}, {0, 0}, "twice"));
  EXPECT_TRUE(refuses({1, -1}, {0, 0}, "twice"));
  const std::vector<double> three(3);
  EXPECT_TRUE(
      raises(ErrorCode::InvalidArgument, {"5 places"}, [&] { contract<double>(a, {1}, three); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {}, [&] { contract(huge, {3}, huge, {3}); }));
}

}  // namespace
}  // namespace tessera::arrays
