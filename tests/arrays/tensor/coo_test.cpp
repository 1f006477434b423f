#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"
#include "tessera/base/error.hpp"
#include "tessera/tests/arrays/tensor/examples.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::box;
using test::coordinates;
using test::raises;
using test::Shape;
using test::square;
using test::tensor;
using testing::ElementsAre;
using testing::IsEmpty;

void expect_entries(const CooTensor<float>& seen, const Shape& shape,
                    const std::vector<std::string>& entries, const std::vector<float>& values) {
  EXPECT_EQ(seen.shape(), shape);
  EXPECT_EQ(seen.nnz(), static_cast<std::int64_t>(values.size()));
  EXPECT_EQ(seen.indices(), coordinates(entries));
  EXPECT_EQ(seen.values(), values);
}

TEST(Coo, COO_01_AnIntervalWithoutEntriesIsEmpty) {
  expect_entries(square().select({Interval{0, 2}, Interval{0, 2}}), {2, 2}, {}, {});
}

TEST(Coo, COO_02_AnIntervalCountsItsIndicesFromItsBegin) {
  expect_entries(square().select({Interval{2, 5}, Interval{0, 2}}), {3, 2}, {"01"}, {3});
}

TEST(Coo, COO_03_AnIntervalInTheOtherCorner) {
  expect_entries(square().select({Interval{0, 2}, Interval{2, 5}}), {2, 3}, {"01", "10"}, {1, 2});
}

TEST(Coo, COO_04_AnIntervalInTheMiddle) {
  expect_entries(square().select({Interval{1, 3}, Interval{1, 3}}), {2, 2}, {"01", "10"}, {2, 3});
}

TEST(Coo, COO_05_RowColumnAndElement) {
  expect_entries(square().select({Point{2}}), {1, 5}, {"01"}, {3});
  expect_entries(square().select({All{}, Point{0}}), {5, 1}, {}, {});
  EXPECT_EQ(square().get({2, 1}), 3);
}

TEST(Coo, COO_06_APointTakesADimensionAwayButNotTheSecondLast) {
  const auto cube = tensor<float>({2, 2, 2}, {"000", "101", "110", "111"}, {2, 1, 4, 3});
  const auto side = cube.select({All{}, Point{0}, All{}});
  expect_entries(side, {2, 2}, {"00", "11"}, {2, 1});
  expect_entries(side.select({Point{1}}), {1, 2}, {"01"}, {1});
}

TEST(Coo, COO_07_AViewOfAView) {
  const auto side = box().select({Interval{1, 4}, Point{1}, All{}});
  expect_entries(side, {3, 3}, {"02", "12", "20"}, {5, 7, 9});
  expect_entries(side.select({All{}, Point{2}}), {3, 1}, {"00", "10"}, {5, 7});
}

TEST(Coo, COO_08_SpecifiedIndicesAreACopy) {
  const auto original = box();
  auto copy = original.select({Specified{{0, 3}}});
  expect_entries(copy, {2, 2, 3}, {"002", "011", "101", "110"}, {1, 2, 8, 9});
  EXPECT_FALSE(copy.is_view());
  copy.put({0, 0, 2}, 50);
  EXPECT_EQ(original.get({0, 0, 2}), 1);
}

TEST(Coo, COO_09_SpecifiedIndicesBesideAnIntervalAndOneAloneAsAPoint) {
  expect_entries(box("302").select({Interval{1, 4}, Specified{{0}}, Specified{{0, 2}}}), {3, 2},
                 {"00", "21"}, {3, 8});
}

TEST(Coo, COO_10_TranslatesThroughAFixedDimension) {
  const auto view = box().select({All{}, Point{1}});
  EXPECT_THAT(view.layout().to_physical(Shape{0, 0}), ElementsAre(0, 1, 0));
  EXPECT_EQ(view.layout().to_view(Shape{0, 1, 0}), (Shape{0, 0}));
  EXPECT_EQ(view.layout().to_view(Shape{0, 0, 0}), std::nullopt);
}

TEST(Coo, COO_11_TranslatesThroughANewAxisAndAFixedDimension) {
  const auto view = box().select({All{}, NewAxis{}, Point{1}});
  EXPECT_EQ(view.shape(), (Shape{4, 1, 3}));
  EXPECT_THAT(view.layout().to_physical(Shape{1, 0, 1}), ElementsAre(1, 1, 1));
  EXPECT_EQ(view.layout().to_view(Shape{1, 1, 1}), (Shape{1, 0, 1}));
  EXPECT_THAT(view.layout().flags, ElementsAre(0, 1, 0));
  EXPECT_THAT(view.layout().offsets, ElementsAre(0, 1, 0));
  EXPECT_THAT(view.layout().hidden, ElementsAre(1));
}

TEST(Coo, COO_12_TranslatesThroughTwoFixedDimensions) {
  const CooTensor<float> four({2, 2, 3, 2});
  const auto view = four.select({All{}, NewAxis{}, Point{1}, Point{2}});
  EXPECT_THAT(view.layout().to_physical(Shape{0, 0, 0}), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(view.layout().to_physical(Shape{1, 0, 1}), ElementsAre(1, 1, 2, 1));
}

TEST(Coo, COO_13_FindsEntriesByBinarySearch) {
  const auto original = box("302");
  EXPECT_EQ(original.find({0, 0, 2}), 0);
  EXPECT_EQ(original.find({3, 0, 2}), 7);
  EXPECT_EQ(original.find({3, 1, 0}), 8);
  EXPECT_EQ(original.find({3, 1, 1}), std::nullopt);
}

TEST(Coo, COO_14_PutsOutOfOrderAreSortedBeforeTheNextRead) {
  CooTensor<float> cube({3, 3, 3});
  cube.put({2, 2, 2}, 3);
  cube.put({1, 1, 1}, 2);
  EXPECT_FALSE(cube.is_settled());
  expect_entries(cube, {3, 3, 3}, {"111", "222"}, {2, 3});
  EXPECT_TRUE(cube.is_settled());
}

TEST(CooPut, OverwritesAndCountsOnce) {
  auto original = square();
  original.put({1, 2}, 7);
  EXPECT_EQ(original.nnz(), 4);
  EXPECT_EQ(original.get({1, 2}), 7);
}

TEST(CooPut, RemovesWithZeroAndIgnoresZeroOnNothing) {
  auto original = square();
  original.put({1, 2}, 0);
  original.put({0, 0}, 0);
  original.put({0, 3}, -0.0f);
  expect_entries(original, {5, 5}, {"21", "34"}, {3, 4});
}

TEST(CooPut, TheLastOneOfSeveralCounts) {
  auto original = square();
  original.put({0, 0}, 1), original.put({0, 0}, 2), original.put({4, 4}, 5);
  original.put({4, 4}, 0), original.put({1, 2}, 0), original.put({1, 2}, 9);
  expect_entries(original, {5, 5}, {"00", "03", "12", "21", "34"}, {2, 1, 9, 3, 4});
}

TEST(CooPut, KeepsNaN) {
  auto original = square();
  original.put({0, 0}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(original.get({0, 0})));
}

TEST(CooPut, GoesThroughAViewOfAViewIntoTheOriginalAndIntoOtherViews) {
  auto original = box();
  const auto other = original.select({Point{3}});
  auto view = original.select({Interval{1, 4}, Point{1}}).select({All{}, Interval{1, 3}});
  view.put({2, 1}, 10);  // (3, 1, 2)
  view.put({0, 1}, 0);   // (1, 1, 2)
  EXPECT_EQ(original.get({3, 1, 2}), 10);
  EXPECT_EQ(original.find({1, 1, 2}), std::nullopt);
  expect_entries(other, {2, 3}, {"01", "10", "12"}, {8, 9, 10});
}

TEST(CooPut, LeavesAClone) {
  auto original = square();
  const auto clone = original.clone();
  original.put({0, 3}, 8);
  EXPECT_EQ(clone.get({0, 3}), 1);
  EXPECT_FALSE(clone == original);
}

TEST(CooSelect, NegativeIndicesCountFromTheEndOfTheirDimension) {
  expect_entries(box().select({Point{-1}}), {2, 3}, {"01", "10"}, {8, 9});
  expect_entries(box().select({Interval{-2, 4}, Point{-2}, Interval{0, -1}}), {2, 2}, {"01", "11"},
                 {6, 8});
  EXPECT_EQ(box().get({-1, -1, -3}), 9);
}

TEST(CooSelect, KeepsTheFirstPointsWhileTwoDimensionsAreMissing) {
  EXPECT_EQ(box().select({Point{1}, All{}, Point{0}}).shape(), (Shape{1, 2}));
  EXPECT_EQ(box().select({All{}, Point{0}, Point{0}}).shape(), (Shape{4, 1}));
  expect_entries(box().select({Point{3}, Point{0}, Point{1}}), {1, 1}, {"00"}, {8});
}

TEST(CooSelect, CountsANewAxisAmongTheTwoDimensions) {
  expect_entries(square().select({NewAxis{}, Point{2}}), {1, 5}, {"01"}, {3});
  expect_entries(square().select({Point{2}, NewAxis{}}), {1, 5}, {"01"}, {3});
  expect_entries(square().select({All{}, All{}, NewAxis{}}), {5, 5, 1},
                 {"030", "120", "210", "340"}, {1, 2, 3, 4});
}

TEST(CooSelect, SelectsOnNewAxesOfAViewToo) {
  const auto view = box().select({NewAxis{}, Point{3}, NewAxis{}});
  EXPECT_EQ(view.shape(), (Shape{1, 1, 2, 3}));
  expect_entries(view.select({Point{0}, All{}, Point{1}}), {1, 3}, {"00"}, {9});
  expect_entries(view.select({All{}, Point{-1}, All{}, Point{1}}), {1, 2}, {"00"}, {8});
}

TEST(CooSelect, SpecifiedIndicesMayTurnRoundAndRepeat) {
  expect_entries(square().select({Specified{{3, 0, 3}}}), {3, 5}, {"04", "13", "24"}, {4, 1, 4});
}

TEST(CooSelect, WorksOnRanksOneAndZero) {
  const auto line = tensor<float>({4}, {"1", "3"}, {5, 6});
  expect_entries(line.select({Point{3}}), {1}, {"0"}, {6});
  CooTensor<float> scalar(Shape{});
  scalar.put({}, 4);
  scalar.put({}, 5);
  EXPECT_EQ(scalar.nnz(), 1);
  EXPECT_EQ(scalar.get({}), 5);
  EXPECT_EQ(scalar.select({NewAxis{}}).shape(), (Shape{1}));
}

TEST(CooSelect, RefusesWhatIsNotThere) {
  const auto refuses = [](const std::vector<Selector>& selectors, const std::string& part) {
    return raises(ErrorCode::InvalidArgument, {part}, [&] { square().select(selectors); });
  };
  EXPECT_TRUE(refuses({Point{5}}, "index 5"));
  EXPECT_TRUE(refuses({All{}, Point{-6}}, "dimension 1"));
  EXPECT_TRUE(refuses({Interval{2, 2}}, "[2, 2)"));
  EXPECT_TRUE(refuses({Interval{3, 6}}, "[3, 6)"));
  EXPECT_TRUE(refuses({Interval{4, 1}}, "[4, 1)"));
  EXPECT_TRUE(refuses({All{}, All{}, All{}}, "more selectors"));
  EXPECT_TRUE(refuses({Specified{{}}}, "no index"));
  EXPECT_TRUE(refuses({Specified{{1, 9}}}, "index 9"));
}

TEST(CooIndex, RefusesWrongLengthsAndPlacesOutsideTheView) {
  const auto view = square().select({Interval{1, 3}});
  for (const Shape& index : {Shape{0}, Shape{0, 0, 0}, Shape{2, 0}, Shape{0, 5}, Shape{-3, 0}})
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {}, [&] { view.get(index); }));
  EXPECT_EQ(view.get({1, 1}), 3);
}

TEST(CooCreate, SortsEntriesAndKeepsZeros) {
  expect_entries(tensor<float>({3, 3}, {"21", "00", "12"}, {1, 0, 3}), {3, 3}, {"00", "12", "21"},
                 {0, 3, 1});
}

TEST(CooCreate, RefusesBrokenArrays) {
  const auto refuses = [](const std::vector<std::string>& entries, std::vector<float> values,
                          const std::string& part) {
    return raises(ErrorCode::BadInput, {part}, [&] { tensor({3, 3}, entries, values); });
  };
  EXPECT_TRUE(refuses({"00", "1"}, {1, 2}, "3 indices"));
  EXPECT_TRUE(refuses({"00", "13"}, {1, 2}, "entry 1"));
  EXPECT_TRUE(refuses({"/0"}, {1}, "index -1"));
  EXPECT_TRUE(refuses({"11", "00", "11"}, {1, 2, 3}, "positions 0 and 2"));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"dimension 1"},
                     [] { CooTensor<float>(Shape{1, std::int64_t{1} << 31}); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"-1"}, [] { CooTensor<float>(Shape{-1}); }));
}

TEST(CooOrder, AnyOrderShowsTheSameTensor) {
  auto turned = box();
  turned.sort_by({2, 0, 1});
  EXPECT_FALSE(turned.is_settled());
  EXPECT_EQ(turned.indices(),
            coordinates({"100", "310", "011", "101", "201", "301", "002", "112", "212"}));
  EXPECT_EQ(turned, box());
  EXPECT_EQ(turned.find({3, 1, 0}), 1);
  turned.put({0, 1, 0}, 7);
  EXPECT_EQ(turned.find({0, 1, 0}), 0);
  EXPECT_TRUE(
      raises(ErrorCode::InvalidArgument, {"[0, 0, 1]"}, [&] { turned.sort_by({0, 0, 1}); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"0..2"}, [&] { turned.sort_by({0, 1}); }));
}

TEST(CooText, NamesShapeAndEntries) {
  std::ostringstream out;
  out << box();
  EXPECT_EQ(out.str(), "COO tensor 4 x 2 x 3, 9 entries");
}

}  // namespace
}  // namespace tessera::arrays
