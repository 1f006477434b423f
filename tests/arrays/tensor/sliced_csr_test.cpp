#include "tessera/arrays/tensor/sliced_csr.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using testing::ElementsAre;
using testing::IsEmpty;

CsrArrays<double> five_arrays(std::vector<double> values) {
  return {5,
          5,
          std::move(values),
          {0, 1, 3, 0, 1, 2, 3, 4, 0, 2, 3, 1, 4},
          {0, 3, 5, 8, 11},
          {3, 5, 8, 11, 13}};
}
// The matrices of CSRV-01 and -02, and of the other examples.
SlicedCsr<double> first_five() {
  return SlicedCsr<double>(five_arrays({1, -2, -3, -2, 5, 4, 6, 4, -4, 2, 7, 8, -5}));
}
SlicedCsr<double> second_five() {
  return SlicedCsr<double>(five_arrays({1, -1, -3, -2, 5, 4, 6, 4, -4, 2, 7, 8, 5}));
}

// The entries that a view visits. In an empty row only begin == end matters.
struct Seen {
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> begin, end;
};
void expect_seen(const SlicedCsr<double>& view, const Seen& expected) {
  EXPECT_EQ(view.columns(), expected.columns);
  const std::vector<std::int64_t> begin = view.row_begin(), end = view.row_end();
  ASSERT_EQ(begin.size(), expected.begin.size());
  ASSERT_EQ(end.size(), expected.begin.size());
  for (std::size_t r = 0; r < begin.size(); ++r) {
    EXPECT_EQ(end[r] - begin[r], expected.end[r] - expected.begin[r]) << "row " << r;
    if (expected.end[r] != expected.begin[r]) {
      EXPECT_EQ(begin[r], expected.begin[r]) << "row " << r;
    }
  }
}

TEST(Csrv, CSRV_01_PutInsertsAndMovesTheRowsBehind) {
  auto matrix = first_five();
  matrix.put(2, 1, 3);
  EXPECT_THAT(matrix.arrays().values, ElementsAre(1, -2, -3, -2, 5, 3, 4, 6, 4, -4, 2, 7, 8, -5));
  EXPECT_EQ(matrix.arrays().columns[5], 1);
  EXPECT_THAT(matrix.row_begin(), ElementsAre(0, 3, 5, 9, 12));
  EXPECT_THAT(matrix.row_end(), ElementsAre(3, 5, 9, 12, 14));
}

TEST(Csrv, CSRV_02_PutOverwritesInPlace) {
  auto matrix = first_five();
  matrix.put(2, 2, 10);
  EXPECT_EQ(matrix.arrays(), five_arrays({1, -2, -3, -2, 5, 10, 6, 4, -4, 2, 7, 8, -5}));
}

TEST(Csrv, CSRV_03_AViewKeepsTheValuesAndShiftsTheColumns) {
  const auto matrix = second_five();
  const auto view = matrix.view(Interval{0, 3}, Interval{3, 5});
  expect_seen(view, {{0, 0, 1}, {2, 3, 6}, {3, 3, 8}});
  EXPECT_EQ(&view.arrays(), &matrix.arrays());
  EXPECT_THAT(view.values(), ElementsAre(-3, 6, 4));
}

TEST(Csrv, CSRV_04_AViewInTheMiddle) {
  expect_seen(second_five().view(Interval{1, 3}, Interval{1, 3}), {{0, 1}, {4, 5}, {5, 6}});
}

TEST(Csrv, CSRV_05_AColumn) {
  expect_seen(second_five().view(All{}, Point{0}), {{0, 0, 0}, {0, 3, 4, 8, 9}, {1, 4, 4, 9, 9}});
}

TEST(Csrv, CSRV_06_Rows) {
  expect_seen(second_five().view(Interval{0, 2}, All{}), {{0, 1, 3, 0, 1}, {0, 3}, {3, 5}});
  expect_seen(second_five().view(Point{2}, All{}), {{2, 3, 4}, {5}, {8}});
}

TEST(Csrv, CSRV_07_AColumnAndPartOfIt) {
  expect_seen(second_five().view(All{}, Point{2}), {{0, 0}, {0, 0, 5, 9, 10}, {0, 0, 6, 10, 10}});
  expect_seen(second_five().view(Interval{1, 4}, Point{2}), {{0, 0}, {0, 5, 9}, {0, 6, 10}});
}

TEST(Csrv, CSRV_08_AViewOfAView) {
  expect_seen(
      second_five().view(Interval{0, 3}, Interval{2, 5}).view(Interval{1, 3}, Interval{0, 2}),
      {{0, 1}, {0, 5}, {0, 7}});
}

TEST(Csrv, CSRV_09_RowsAndColumnsOfAView) {
  const auto view = second_five().view(Interval{0, 3}, Interval{2, 5});
  expect_seen(view.view(All{}, Point{0}), {{0}, {0, 0, 5}, {0, 0, 6}});
  expect_seen(view.view(All{}, Point{1}), {{0, 0}, {2, 3, 6}, {3, 3, 7}});
  expect_seen(view.view(Point{0}, All{}), {{1}, {2}, {3}});
  expect_seen(view.view(Point{1}, All{}), {{}, {0}, {0}});
}

TEST(SlicedCsr, PutThroughAViewIsSeenByTheOriginalAndByOtherViews) {
  auto matrix = second_five();
  const auto other = matrix.view(Point{4}, All{});
  auto view = matrix.view(Interval{1, 4}, Interval{2, 5}).view(Point{-1}, All{});
  view.put(0, 2, 77);  // (3, 4)
  view.put(0, 0, 0);   // (3, 2)
  EXPECT_EQ(matrix.get(3, 4), 77);
  EXPECT_EQ(matrix.get(3, 2), 0);
  EXPECT_EQ(matrix.nnz(), 13);
  EXPECT_THAT(other.values(), ElementsAre(8, 5));
  EXPECT_TRUE(view.is_view());
  EXPECT_FALSE(matrix.is_view());
}

TEST(SlicedCsr, InsertsIntoThePositionThatARemovalLeft) {
  auto matrix = second_five();
  matrix.put(1, 0, 0);
  EXPECT_EQ(matrix.nnz(), 12);
  matrix.put(1, 4, 9);
  EXPECT_EQ(matrix.arrays().values.size(), 13u);
  EXPECT_THAT(matrix.view(Point{1}, All{}).columns(), ElementsAre(1, 4));
  matrix.put(1, 3, 0);  // not there
  EXPECT_EQ(matrix.nnz(), 13);
}

// Truth: a dense matrix that gets the same puts.
TEST(SlicedCsr, RandomPutsThroughRandomViewsOfRowsAndColumnsAgreeWithADenseMatrix) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Random random(seed);
    Matrix<float> truth(7, 11);
    SlicedCsr<float> rows(7, 11);
    SlicedCsc<float> cols(7, 11);
    for (int i = 0; i < 200; ++i) {
      const std::int64_t r0 = random.below(7), c0 = random.below(11);
      auto row_view = rows.view(Interval{r0, 7}, Interval{c0, 11});
      auto col_view = cols.view(Interval{r0, 7}, Interval{c0, 11});
      const std::int64_t r = random.below(7 - r0), c = random.below(11 - c0);
      const float value = static_cast<float>(random.below(3));
      row_view.put(r, c, value), col_view.put(r, c, value);
      truth(r0 + r, c0 + c) = value;
      EXPECT_EQ(row_view.get(r, c), value);
    }
    EXPECT_EQ(to_dense(rows), truth);
    EXPECT_EQ(to_dense(cols), truth);
    EXPECT_EQ(to_csr(rows), sparse::from_dense<float>(truth.view(), {1, 1}));
    EXPECT_EQ(to_csc(cols), to_csc(to_csr(rows)));
    SlicedCsr<float>{rows.arrays()};  // the invariants still hold
  }
}

TEST(SlicedCsr, AssignsAWindowAndLeavesTheRest) {
  auto matrix = second_five();
  Matrix<double> expected = to_dense(matrix), window(2, 3);
  window(0, 0) = 20, window(1, 2) = 30;
  for (std::int64_t r = 0; r < 2; ++r)
    for (std::int64_t c = 0; c < 3; ++c) expected(2 + r, 1 + c) = window(r, c);
  auto view = matrix.view(Interval{2, 4}, Interval{1, 4});
  view.assign(window.view());
  EXPECT_EQ(to_dense(matrix), expected);
  EXPECT_EQ(to_dense(view.clone()), window);
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 3"}, [&] { matrix.assign(window.view()); }));
}

TEST(SlicedCsc, TurnsNamesRound) {
  const SlicedCsc<double> matrix(second_five());  // the transpose of the example
  EXPECT_EQ(matrix.get(4, 2), 4);
  EXPECT_THAT(matrix.view(Interval{3, 5}, Interval{0, 3}).row_indices(), ElementsAre(0, 0, 1));
  EXPECT_THAT(matrix.col_begin(), ElementsAre(0, 3, 5, 8, 11));
  EXPECT_EQ(matrix.col(2), (Range{5, 8}));
}

TEST(SlicedCsr, AcceptsFreePositionsBetweenRows) {
  const SlicedCsr<double> matrix(
      CsrArrays<double>{2, 3, {1, 99, 2, 99}, {2, 99, 0, -5}, {0, 2}, {1, 3}});
  EXPECT_EQ(matrix.nnz(), 2);
  EXPECT_EQ(matrix.get(1, 0), 2);
}

TEST(SlicedCsr, RefusesBrokenArrays) {
  using Change = std::function<void(CsrArrays<double>&)>;
  const auto refuses = [](const Change& change, const std::string& part) {
    auto arrays = second_five().arrays();
    change(arrays);
    return raises(ErrorCode::BadInput, {part}, [&] { SlicedCsr<double>{arrays}; });
  };
  EXPECT_TRUE(refuses([](auto& a) { a.row_end.pop_back(); }, "row_end 4"));
  EXPECT_TRUE(refuses([](auto& a) { a.values.pop_back(); }, "12 values"));
  EXPECT_TRUE(refuses([](auto& a) { a.row_end[4] = 14; }, "row 4"));
  EXPECT_TRUE(refuses([](auto& a) { a.row_begin[0] = -1; }, "row 0"));
  EXPECT_TRUE(refuses([](auto& a) { a.row_begin[1] = 2; }, "row 1"));
  EXPECT_TRUE(refuses([](auto& a) { a.row_end[1] = 2; }, "row 1"));
  EXPECT_TRUE(refuses([](auto& a) { a.columns[4] = 5; }, "columns[4] in row 1"));
  EXPECT_TRUE(refuses([](auto& a) { a.columns[4] = 0; }, "ascend"));
  EXPECT_TRUE(refuses([](auto& a) { a.cols = -1; }, "rows and columns"));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"-1"}, [] { SlicedCsr<float>(-1, 2); }));
}

TEST(SlicedCsr, RefusesIndicesOutsideAView) {
  auto view = second_five().view(Interval{0, 2}, Interval{0, 2});
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"index 2"}, [&] { view.put(2, 0, 1); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"index -3"}, [&] { view.get(0, -3); }));
  EXPECT_TRUE(
      raises(ErrorCode::InvalidArgument, {"[1, 3)"}, [&] { view.view(All{}, Interval{1, 3}); }));
}

// Every pair of a few lists, against the elements one by one.
TEST(SlicedSelect, SpecifiedIndicesAreACopyOfThoseRowsAndColumns) {
  const SlicedCsr<float> whole = to_sliced(test::draw({"12.4.", ".....", "6.8.9", ".3..5"}));
  const SlicedCsr<float> view = whole.view(Interval{0, 4}, Interval{1, 5});
  const std::vector<Selector> picks = {
      Specified{{3, 0, 3, 2}}, Specified{{1}}, Specified{{-1, 2}}, All{}, Interval{1, 3}, Point{2}};
  const auto indices = [](const Selector& pick) -> std::vector<std::int64_t> {
    if (const auto* list = std::get_if<Specified>(&pick)) return list->at;
    if (std::holds_alternative<All>(pick)) return {0, 1, 2, 3};
    if (std::holds_alternative<Interval>(pick)) return {1, 2};
    return {2};
  };
  for (const Selector& rows : picks)
    for (const Selector& cols : picks) {
      SlicedCsr<float> taken = select(view, rows, cols);
      const auto r = indices(rows), c = indices(cols);
      ASSERT_EQ(taken.rows(), std::ssize(r));
      ASSERT_EQ(taken.cols(), std::ssize(c));
      for (std::size_t i = 0; i < r.size(); ++i)
        for (std::size_t j = 0; j < c.size(); ++j)
          EXPECT_EQ(taken.get(std::int64_t(i), std::int64_t(j)), view.get(r[i], c[j]));
      const bool is_copy =
          std::holds_alternative<Specified>(rows) || std::holds_alternative<Specified>(cols);
      EXPECT_EQ(&taken.arrays() != &view.arrays(), is_copy);
    }
}

TEST(SlicedSelect, OfACscTurnsNamesRound) {
  const auto csc = to_sliced(to_csc(test::draw({"12.", "..3"})));
  const auto taken = select(csc, All{}, Specified{{2, 0}});
  EXPECT_EQ(to_dense(taken), to_dense(test::draw({".1", "3."})));
}

TEST(SlicedSelect, RefusesWhatIsNotThere) {
  const SlicedCsr<float> m = to_sliced(test::draw({"12.", "..3"}));
  const auto refused = [&](const Selector& rows, const Selector& cols, const std::string& text) {
    EXPECT_TRUE(test::raises(ErrorCode::InvalidArgument, {text}, [&] { select(m, rows, cols); }));
  };
  refused(Specified{{0, 2}}, All{}, "index 2");
  refused(All{}, Specified{{-4}}, "index -4");
  refused(Specified{}, All{}, "no index");
  refused(NewAxis{}, All{}, "new axis");
}

}  // namespace
}  // namespace tessera::arrays
