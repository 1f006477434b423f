#include "tessera/arrays/mapped/mapped_array.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using Indices = std::vector<std::int64_t>;
using Columns = std::vector<std::int32_t>;
using Values = std::vector<float>;

constexpr MappedKind kKinds[] = {MappedKind::Strided, MappedKind::Coo, MappedKind::FlatCoo,
                                 MappedKind::Csr};

// The tensor of DM-03 to DM-05.
CooTensor<float> nine() {
  return test::tensor<float>({2, 3, 4},
                             {"001", "002", "003", "021", "100", "103", "120", "122", "123"},
                             {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

void expect_csr(const Mapping& mapping, const Indices& crow, const Columns& col,
                const Values& values) {
  const auto array = to_mapped(nine(), mapping, MappedKind::Csr);
  const auto* csr = array.storage<sparse::Csr<float>>();
  ASSERT_NE(csr, nullptr);
  EXPECT_EQ(csr->row_begin, crow);
  EXPECT_EQ(csr->col, col);
  EXPECT_EQ(csr->values, values);
  EXPECT_EQ(to_tensor(array), nine());
}

TEST(MappedArray, DM_03_LeadingAxesAsRows) {
  expect_csr(Mapping({2, 3, 4}), {0, 3, 3, 4, 6, 6, 9}, {1, 2, 3, 1, 0, 3, 0, 2, 3},
             {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST(MappedArray, DM_04_TheFirstAxisAsRows) {
  expect_csr(Mapping({2, 3, 4}, {0, 1, 2}, {1}), {0, 4, 9}, {1, 2, 3, 9, 0, 3, 8, 10, 11},
             {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST(MappedArray, DM_05_TheAxesTurnedRound) {
  expect_csr(Mapping({2, 3, 4}, {2, 1, 0}, {1}), {0, 2, 4, 6, 9}, {1, 5, 0, 4, 0, 5, 0, 1, 5},
             {5, 7, 1, 4, 2, 8, 3, 6, 9});
}

TEST(MappedArray, DM_07_ARowOrAColumnMatrix) {
  const sparse::Csr<float> drawn = test::draw({"..1.2", "3..4.", "5.67.", "...89"});
  const Matrix<float> elements = to_dense(drawn);
  const auto rows = to_mapped(to_array(elements.view()), Mapping({4, 5}), MappedKind::Csr);
  const auto* csr = rows.storage<sparse::Csr<float>>();
  EXPECT_EQ(csr->row_begin, (Indices{0, 2, 4, 7, 9}));
  EXPECT_EQ(csr->col, (Columns{2, 4, 0, 3, 0, 2, 3, 3, 4}));
  const auto turned = to_mapped(to_tensor(rows), Mapping({4, 5}, {1, 0}, {1}), MappedKind::Csr);
  const auto* csc = turned.storage<sparse::Csr<float>>();
  EXPECT_EQ(csc->row_begin, (Indices{0, 2, 2, 4, 7, 9}));
  EXPECT_EQ(csc->col, (Columns{1, 2, 0, 2, 1, 2, 3, 0, 3}));
  EXPECT_EQ(to_csr(rows), drawn);
  EXPECT_EQ(to_csr(turned), drawn);
  EXPECT_EQ(to_csr(turned.swapped(0, 1)), sparse::transpose(drawn));
}

// The 2 x 3 example in every storage; the last lies in another mapped array.
std::vector<MappedArray<float>> every_storage() {
  const auto six = test::dense({2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<MappedArray<float>> arrays;
  for (const MappedKind kind : kKinds) arrays.push_back(to_mapped(six, Mapping({2, 3}), kind));
  const auto turned = test::dense({3, 2}, {1, 4, 2, 5, 3, 6});
  arrays.emplace_back(Mapping({2, 3}, {1, 0}, {1}),
                      to_mapped(turned, Mapping({3, 2}, {1, 0}, {1}), MappedKind::Csr));
  return arrays;
}

TEST(MappedArray, DM_13_SlicesHoldTheSameElementsInEveryStorage) {
  struct Case {
    std::vector<AxisSelector> selectors;
    DenseArray<float> expected;
  };
  const std::vector<Case> cases = {
      {{Slice{{}, {}, -1}}, test::dense({2, 3}, {4, 5, 6, 1, 2, 3})},
      {{Slice{-2, {}, -1}}, test::dense({1, 3}, {1, 2, 3})},
      {{All{}, Slice{{}, {}, -2}}, test::dense({2, 2}, {3, 1, 6, 4})},
      {{Slice{{}, {}, -1}, Slice{1, {}}}, test::dense({2, 2}, {5, 6, 2, 3})},
      {{Point{-1}}, test::dense({3}, {4, 5, 6})},
      {{All{}, Point{1}}, test::dense({2}, {2, 5})},
      {{Point{1}, Point{2}}, test::dense({}, {6})},
      {{Slice{5, {}}}, test::dense({0, 3}, {})}};
  for (const MappedArray<float>& array : every_storage())
    for (const Case& c : cases) {
      const auto part = array.select(c.selectors);
      EXPECT_EQ(to_dense(part), c.expected) << array;
      EXPECT_TRUE(part.shares_storage_with(array));
      EXPECT_EQ(part.is_full(), true);
    }
}

// Random arrays of rank four: every storage, cut and slice shows what a dense array would.
TEST(MappedArray, RandomSlicesAgreeWithADenseArray) {
  Random random(/*seed=*/13);
  const Indices shape = {3, 4, 2, 5};
  for (int round = 0; round < 40; ++round) {
    const auto dense = test::random_rows<float>(shape, 0.7, random);
    const Mapping mapping(shape, round % 2 == 0 ? Indices{2, 0, 3, 1} : Indices{1, 3, 0, 2},
                          {1 + random.below(3)});
    std::vector<AxisSelector> selectors;
    for (const std::int64_t length : shape) {
      const std::int64_t step = random.below(2) == 0 ? -1 - random.below(2) : 1 + random.below(2);
      if (random.below(4) == 0)
        selectors.push_back(Point{random.below(length)});
      else
        selectors.push_back(Slice{{}, {}, step});
    }
    const auto truth = to_mapped(dense, Mapping(shape, {0, 1, 2, 3}, {}), MappedKind::Strided);
    const auto expected = to_dense(truth.select(selectors));
    for (const MappedKind kind : kKinds) {
      const auto part = to_mapped(dense, mapping, kind).select(selectors);
      ASSERT_EQ(to_dense(part), expected) << part;
      ASSERT_TRUE(equal(part, truth.select(selectors)));
    }
  }
}

TEST(MappedArray, SwapsAxesWithoutACopy) {
  const auto array = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr);
  const auto swapped = array.swapped(0, 2);
  EXPECT_TRUE(swapped.shares_storage_with(array));
  EXPECT_EQ(swapped.shape(), (Indices{4, 3, 2}));
  EXPECT_EQ(swapped.get({3, 2, 1}), 9);
  EXPECT_EQ(swapped.swapped(2, 0), array);
}

TEST(MappedArray, TellsUnspecifiedFromZero) {
  const auto array = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::FlatCoo);
  EXPECT_EQ(array.get({0, 0, 0}), 0);
  EXPECT_EQ(array.find(Indices{0, 0, 0}), std::nullopt);
  const auto nothing = array.with_unspecified(std::nullopt);
  EXPECT_EQ(nothing.get({0, 0, 0}), std::nullopt);
  EXPECT_EQ(nothing.get({1, 2, -1}), 9);
  EXPECT_FALSE(array.is_full());
  EXPECT_EQ(array.specified(), 9);
  EXPECT_FALSE(equal(array, nothing));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"no value"}, [&] { to_dense(nothing); }));
}

TEST(MappedArray, EqualsByStorageAndByElements) {
  const auto csr = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr);
  const auto again = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr);
  const auto coo = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Coo);
  const auto full = to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Strided);
  EXPECT_EQ(csr, again);
  EXPECT_NE(csr, coo);
  EXPECT_TRUE(equal(csr, coo));
  EXPECT_TRUE(equal(csr, full));
  EXPECT_FALSE(csr == csr.with_unspecified(1));
  auto other = nine();
  other = other.clone();
  other.put({0, 0, 1}, 7);
  EXPECT_FALSE(equal(csr, to_mapped(other, Mapping({2, 3, 4}), MappedKind::Csr)));
}

TEST(MappedArray, ARankTwoViewReachesACsr) {
  const auto cube = to_mapped(nine(), Mapping({2, 3, 4}, {2, 1, 0}, {1}), MappedKind::Csr);
  const sparse::Csr<float> slice = to_csr(cube.select({Point{1}, Slice{{}, {}, -1}}));
  check(slice);
  EXPECT_EQ(slice, test::draw({"7.89", "....", "5..6"}));
}

TEST(MappedArray, TakesATensorThatIsAView) {
  const auto view = nine().select({Interval{1, 2}, All{}, Interval{1, 4}});
  const auto array = to_mapped(view, Mapping({1, 3, 3}), MappedKind::Coo);
  EXPECT_EQ(to_tensor(array), view.clone());
  const MappedArray<float> direct(Mapping({1, 3, 3}, {0, 1, 2}, {1, 2}), view);
  EXPECT_EQ(to_tensor(direct), view.clone());
}

TEST(MappedArray, PrintsOneLine) {
  std::ostringstream out;
  out << to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr);
  EXPECT_EQ(out.str(), "mapped array 2 x 3 x 4 in csr 6 x 4, 9 stored");
}

TEST(MappedArrayRefuses, StoragesThatDoNotFitOrAreBroken) {
  using Array = MappedArray<float>;
  const Mapping mapping({2, 3});
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"csr storage is 3 x 2", "needs 2 x 3"},
                     [&] { Array(mapping, test::draw({"..", "..", ".."})); }));
  sparse::Csr<float> broken = test::draw({"1..", "..2"});
  broken.col[1] = 3;
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"col[1]"}, [&] { Array(mapping, broken); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2"}, [&] {
    Array(Mapping({2, 2}), sparse::with_block(test::draw({"12", "34"}), {2, 2}));
  }));
  const auto flat = [&](Indices positions, Values values) {
    Array(mapping, FlatCooStorage<float>{{2, 3}, std::move(positions), std::move(values)});
  };
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"positions[0] is 6"}, [&] { flat({6}, {1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"positions[0] is -1"}, [&] { flat({-1}, {1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"positions[1] is 2"}, [&] { flat({2, 2}, {1, 2}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"1 positions and 2"}, [&] { flat({2}, {1, 2}); }));
  const auto strided = [&](Indices strides) {
    Array(mapping, StridedStorage<float>{Buffer<float>(Values(6)), {2, 3}, std::move(strides)});
  };
  EXPECT_NO_THROW(strided({3, 1}));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"outside its buffer"}, [&] { strided({4, 1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"outside its buffer"}, [&] { strided({-3, 1}); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"1 strides"}, [&] { strided({1}); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"reach"},
                     [&] { strided({std::int64_t{1} << 62, std::int64_t{1} << 62}); }));
}

TEST(MappedArrayRefuses, ConversionsThatCannotBe) {
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 3 x 4 and 2 x 3 differ"},
                     [] { to_mapped(nine(), Mapping({2, 3}), MappedKind::Coo); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"two storage axes", "3"}, [] {
    to_mapped(nine(), Mapping({2, 3, 4}, {0, 1, 2}, {1, 2}), MappedKind::Csr);
  }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 3 x 4 is no matrix"},
                     [] { to_csr(to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr)); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"index 2"}, [] {
    to_mapped(nine(), Mapping({2, 3, 4}), MappedKind::Csr).get({2, 0, 0});
  }));
}

}  // namespace
}  // namespace tessera::arrays
