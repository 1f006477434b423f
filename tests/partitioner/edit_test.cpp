// CellEdits changes buckets in place to what encoding the changed matrix gives.

#include "tessera/partitioner/edit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tessera/base/half.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/partitioner/patterns.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::partitioner {
namespace {

using sparse::Csr;
using sparse::PatternChange;

TileGrid grid_of(const Csr<float>& matrix, Dims splits, std::int64_t word_bits) {
  const std::int64_t places = matrix.block_rows() * matrix.block_cols();
  return {.size = {1, matrix.rows, matrix.cols, 24},
          .block = matrix.block,
          .z_grain = 1,
          .splits = splits,
          .data_type = DataType::Float,
          .workers = 1,
          .word_bits = word_bits,
          .meta_words = 3 * places + 20,
          .blocks = places};
}

struct Expected {
  std::vector<BlockEdit> edits;     // ascending
  std::vector<std::int32_t> shift;  // by row
};

Expected edits_of(const Csr<float>& before, const Csr<float>& after, const PatternChange& change) {
  Expected result;
  for (const sparse::BlockAt at : change.removed) result.edits.push_back({at.row, at.col, -1});
  for (const sparse::BlockAt at : change.added) {
    const auto first = after.col.begin() + after.row_begin[std::size_t(at.row)];
    result.edits.push_back(
        {at.row, at.col,
         std::int32_t(std::find(first, after.col.end(), at.col) - after.col.begin())});
  }
  std::sort(result.edits.begin(), result.edits.end(), [](const BlockEdit& a, const BlockEdit& b) {
    return std::pair(a.row, a.col) < std::pair(b.row, b.col);
  });
  for (std::int64_t row = 0; row < before.block_rows(); ++row)
    result.shift.push_back(
        std::int32_t(after.row_begin[std::size_t(row)] - before.row_begin[std::size_t(row)]));
  return result;
}

// Values name their blocks, so that one that was mixed up shows; added blocks have zeros.
Csr<float> with_values(Csr<float> m) {
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = float(i + 1);
  return m;
}

// Returns the number in the matrix that each block of its transpose has.
std::vector<std::int32_t> numbers_of_transpose(const Csr<float>& m) {
  std::vector<std::int32_t> number;
  for (std::int32_t col = 0; col < m.block_cols(); ++col)
    for (std::int64_t row = 0; row < m.block_rows(); ++row)
      for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1];
           ++i)
        if (m.col[std::size_t(i)] == col) number.push_back(std::int32_t(i));
  return number;
}

Buckets encoded_whole(const Csr<float>& m, const TileGrid& grid,
                      const std::vector<std::int32_t>& number = {}) {
  Buckets buckets = *encode(m, grid).buckets;
  for (std::int32_t& source : buckets.source)
    if (source >= 0 && !number.empty()) source = number[std::size_t(source)];
  return buckets;
}

std::int64_t rows_of(const Buckets& buckets) {
  std::int64_t rows = 0;
  for (std::int64_t b = 0; b < buckets.grid.buckets(); ++b) rows += count_record(buckets, b).rows;
  return rows;
}

void expect_same(const Buckets& edited, const Buckets& fresh) {
  EXPECT_EQ(edited.meta, fresh.meta);
  EXPECT_EQ(edited.source, fresh.source);
  EXPECT_EQ(edited.stats.blocks, fresh.stats.blocks);
  EXPECT_EQ(edited.stats.records, fresh.stats.records);
  EXPECT_EQ(edited.stats.fullest_words, fresh.stats.fullest_words);
  EXPECT_EQ(edited.stats.fullest_blocks, fresh.stats.fullest_blocks);
}

struct Shape {
  std::int64_t rows, cols;
  BlockShape block;
  Dims splits;
};

const std::vector<Shape> kShapes = {{1, 1, {1, 1}, {1, 1, 1, 1}},
                                    {40, 60, {1, 1}, {1, 3, 4, 1}},
                                    {37, 53, {1, 1}, {1, 5, 2, 1}},
                                    {24, 48, {4, 4}, {1, 2, 3, 1}},
                                    {30, 20, {3, 5}, {1, 5, 1, 1}}};

void expect_row_by_row(const Shape& shape, double density, double share, std::int32_t rows,
                       std::int64_t word_bits, int threads, std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << shape.rows << "x" << shape.cols << " density " << density
                                  << " share " << share << " rows " << rows << " words "
                                  << word_bits << " threads " << threads);
  const auto executor = make_executor(threads);
  Random random(seed);
  Csr<float> matrix =
      with_values(sparse::random_pattern(shape.rows, shape.cols, shape.block, density, seed));
  const TileGrid grid = grid_of(matrix, shape.splits, word_bits);
  Buckets buckets = encoded_whole(matrix, grid);
  std::vector<float> values = to_bucket_order<float, float>(buckets, matrix.values);
  for (int round = 0; round < 3; ++round) {
    const PatternChange change = test::random_change(matrix, share, random, rows);
    const Csr<float> after = sparse::with_change(matrix, change);
    const Expected edits = edits_of(matrix, after, change);
    CellEdits cells(buckets, edits.edits, edits.shift, Numbering::RowByRow, 4, *executor);
    ASSERT_TRUE(cells.fit());
    cells.apply<float>(buckets, values, *executor);
    const Buckets fresh = encoded_whole(after, grid);
    expect_same(buckets, fresh);
    EXPECT_EQ(values, (to_bucket_order<float, float>(fresh, after.values)));
    EXPECT_GE(cells.most_rows(), rows_of(buckets));
    matrix = after;
  }
}

TEST(CellEdits, WriteWhatTheEncoderWrites) {
  std::uint64_t seed = 1;
  tessera::test::Cases cases;
  for (const Shape& shape : kShapes)
    for (const double density : {0.0, 0.1, 0.6, 1.0})
      for (const double share : {0.0, 0.02, 0.5, 1.0})
        for (const std::int32_t rows : {2, 1000})
          for (const std::int64_t bits : {16, 32}) {
            ++seed;
            if (!cases.next()) continue;
            expect_row_by_row(shape, density, share, rows, bits, 1 + int(seed % 3), seed);
          }
}

// The buckets of a transpose without values, whose source map names blocks of the matrix.
TEST(CellEdits, RenumberTheBlocksOfATranspose) {
  std::uint64_t seed = 1;
  for (const Shape& shape : kShapes)
    for (const double density : {0.0, 0.1, 0.6, 1.0})
      for (const double share : {0.0, 0.02, 0.5, 1.0}) {
        SCOPED_TRACE(testing::Message() << shape.rows << "x" << shape.cols << " density " << density
                                        << " share " << share);
        ++seed;
        const auto executor = make_executor(1 + int(seed % 3));
        Random random(seed);
        const Csr<float> matrix =
            sparse::random_pattern(shape.rows, shape.cols, shape.block, density, seed);
        const PatternChange change = test::random_change(matrix, share, random);
        const Csr<float> after = sparse::with_change(matrix, change);
        Expected edits = edits_of(matrix, after, change);
        for (BlockEdit& edit : edits.edits) std::swap(edit.row, edit.col);
        std::stable_sort(edits.edits.begin(), edits.edits.end(),
                         [](const BlockEdit& a, const BlockEdit& b) { return a.row < b.row; });
        const Csr<float> turned = sparse::transpose(matrix);
        const TileGrid grid = grid_of(turned, {1, shape.splits.y, shape.splits.x, 1}, 16);
        Buckets buckets = encoded_whole(turned, grid, numbers_of_transpose(matrix));
        CellEdits cells(buckets, edits.edits, edits.shift, Numbering::ColumnByColumn, 0, *executor);
        ASSERT_TRUE(cells.fit());
        cells.apply(buckets, *executor);
        expect_same(buckets,
                    encoded_whole(sparse::transpose(after), grid, numbers_of_transpose(after)));
      }
}

TEST(CellEdits, SayWhenABucketIsTooSmall) {
  const auto executor = make_executor(1);
  const Csr<float> one{2, 4, {1, 1}, {0, 1, 1}, {0}, {1}};
  TileGrid grid = grid_of(one, {1, 1, 2, 1}, 16);
  grid.blocks = 1;
  const std::vector<BlockEdit> moves = {{0, 0, -1}, {0, 1, 0}}, adds = {{0, 1, 1}};
  const Buckets buckets = encoded_whole(one, grid);
  EXPECT_TRUE(CellEdits(buckets, moves, {0, 0}, Numbering::RowByRow, 4, *executor).fit());
  EXPECT_FALSE(CellEdits(buckets, adds, {0, 1}, Numbering::RowByRow, 4, *executor).fit());
  grid.blocks = 2;
  EXPECT_TRUE(
      CellEdits(encoded_whole(one, grid), adds, {0, 1}, Numbering::RowByRow, 4, *executor).fit());
  grid.meta_words = encoded_whole(one, grid).stats.fullest_words;
  EXPECT_FALSE(
      CellEdits(encoded_whole(one, grid), adds, {0, 1}, Numbering::RowByRow, 4, *executor).fit());
}

TEST(CellEdits, FindTheRowsThatARecordNames) {
  const Csr<float> m{3, 2, {1, 1}, {0, 1, 1, 3}, {0, 0, 1}, {1, 1, 1}};
  const Buckets buckets = encoded_whole(m, grid_of(m, {1, 1, 2, 1}, 16));
  std::vector<char> named(3, 1);
  find_named_rows(buckets, 0, named);
  EXPECT_EQ(named, (std::vector<char>{1, 0, 1}));
  find_named_rows(buckets, 1, named);
  EXPECT_EQ(named, (std::vector<char>{0, 0, 1}));
  EXPECT_EQ(count_record(buckets, 0).rows, 2);
  EXPECT_EQ(count_record(buckets, 1).blocks, 1);
}

}  // namespace
}  // namespace tessera::partitioner
