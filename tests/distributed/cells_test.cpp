// Ranks whose rows are much emptier or fuller than those of the whole layer cut their cells where
// one process cuts its cells, so bits do not depend on the number of ranks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::distributed {
namespace {

// With these caches the cells of 32 x 10,000 with one column, and of 32 x 300 with 64, change at
// densities between those of the ranks below.
const host::HostCpu kCpu{
    .cores = 2, .l1_data = Bytes(8 << 10), .l2 = Bytes(64 << 10), .l3 = Bytes(1 << 20)};

struct Shape {
  std::int64_t x, y, z;
  double density;
  BlockShape block = {1, 1};

  std::string name() const {
    return std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z);
  }
  Problem problem(DataType type) const {
    return {.size = {1, x, y, z},
            .block = block,
            .density = density,
            .data_type = type,
            .grad_a = true,
            .grad_w = true};
  }
};

// Returns a matrix with shares of the blocks that fall with the square of the block row, or of the
// block rows behind it.
sparse::Csr<float> skewed(const Shape& shape, bool first_rows_are_full) {
  const std::int64_t rows = shape.x / shape.block.rows, cols = shape.y / shape.block.cols;
  sparse::Coo<float> places{.rows = shape.x, .cols = shape.y, .block = shape.block};
  for (std::int64_t r = 0; r < rows; ++r) {
    const double place = double(first_rows_are_full ? r + 1 : rows - r);
    const auto count = std::min(
        cols, 1 + std::int64_t(shape.density * double(rows * cols) / (1.6 * place * place)));
    for (const std::int64_t c : sparse::random_choice(cols, count, std::uint64_t(r + 1))) {
      places.row.push_back(std::int32_t(r));
      places.col.push_back(std::int32_t(c));
    }
  }
  places.values.resize(places.row.size() * std::size_t(shape.block.area()));
  Random random(4);
  for (float& value : places.values) value = float(2 * random.unit() - 1);
  return sparse::to_csr(places);
}

// The operands of a layer and its results, of which each rank reads and writes its rows.
template <class T>
struct Run {
  Run(const Shape& shape, std::int64_t values)
      : s(random_matrix<T>(shape.y, shape.z, 5)),
        q_grad(random_matrix<T>(shape.x, shape.z, 6)),
        q(shape.x, shape.z),
        s_grad(shape.y, shape.z),
        gradients(std::size_t(values)) {}

  template <class SomeLayer>
  void passes(SomeLayer& layer, Range rows, Range cols, std::int64_t first_value) {
    const Range all{0, s.cols()};
    const MatrixView<const T> in = s.view().sub(cols, all), dq = q_grad.view().sub(rows, all);
    layer.template forward<T>(in, q.view().sub(rows, all));
    layer.template grad_a<T>(dq, s_grad.view().sub(cols, all));
    layer.template grad_w<T>(
        dq, in,
        std::span(gradients).subspan(std::size_t(first_value), std::size_t(layer.values())));
  }

  Matrix<T> s, q_grad, q, s_grad;
  std::vector<float> gradients;
};

// Returns the change of the block rows `rows` that adds every block that they do not have in the
// first columns.
sparse::PatternChange filling(const sparse::Csr<float>& weights, Range rows, std::int64_t cols) {
  sparse::PatternChange change;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const auto first = weights.col.begin() + weights.row_begin[std::size_t(r)];
    const auto last = weights.col.begin() + weights.row_begin[std::size_t(r) + 1];
    for (std::int32_t c = 0; c < std::int32_t(cols); ++c)
      if (!std::binary_search(first, last, c))
        change.added.push_back({std::int32_t(r - rows.begin), c});
  }
  return change;
}

// The layer of ranks has the pattern of `after` from a change that each makes of its own rows.
template <class T>
void expect_bits_of_one(const Shape& shape, const sparse::Csr<float>& before,
                        const sparse::Csr<float>& after, int count) {
  SCOPED_TRACE(shape.name() + ", ranks " + std::to_string(count));
  const Problem problem = shape.problem(data_type_of<T>());
  const auto executor = make_executor(1);
  host::HostLayer alone(problem, kCpu, *executor, {.reads_rows = false});
  alone.set_weights(after);
  Run<T> expected(shape, std::ssize(after.values)), got = expected;
  expected.passes(alone, {0, shape.x}, {0, shape.y}, 0);
  run_ranks(count, [&](Communicator& ranks) {
    const auto own = make_executor(1);
    RankLayer layer(problem, kCpu, *own, ranks);
    const RowCut outputs = cut_rows(shape.x, shape.block.rows, count);
    const Range rows = outputs.of(ranks.rank());
    layer.set_rows(outputs, rows_of(before, rows));
    layer.commit(
        layer.prepare_update(sparse::difference(rows_of(before, rows), rows_of(after, rows))));
    got.passes(layer, rows, layer.inputs(),
               after.row_begin[std::size_t(rows.begin / shape.block.rows)] * shape.block.area());
  });
  EXPECT_EQ(got.q, expected.q);
  EXPECT_EQ(got.s_grad, expected.s_grad);
  EXPECT_EQ(got.gradients, expected.gradients);
}

std::vector<Shape> shapes() {
  return {{32, 10000, 1, 0.004},
          {32, 10000, 1, 0.0015},
          {32, 10000, 4, 0.004},
          {32, 300, 193, 0.1},
          {64, 600, 1, 0.1, {4, 4}}};
}

TEST(CellsOfRanks, AreThoseOfOneProcessWhereRowsHaveOtherDensities) {
  tessera::test::Cases cases;
  for (const Shape& shape : shapes())
    for (const bool first_rows_are_full : {true, false})
      for (const int count : {1, 2, 3, 4}) {
        if (!cases.next()) continue;
        const sparse::Csr<float> weights = skewed(shape, first_rows_are_full);
        expect_bits_of_one<float>(shape, weights, weights, count);
        expect_bits_of_one<BFloat16>(shape, weights, weights, count);
      }
}

// The ranks behind the first have no change of their own, and cut their rows again all the same.
TEST(CellsOfRanks, FollowAChangeOfThePatternOfOtherRanks) {
  const Shape shape{32, 10000, 1, 0.0015};
  const sparse::Csr<float> sparser = skewed(shape, /*first_rows_are_full=*/true);
  const sparse::Csr<float> fuller =
      sparse::with_change(sparser, filling(sparser, {0, 2}, shape.y / 2));
  const auto cells_with = [&](const sparse::Csr<float>& weights) {
    return product_cells({{1, shape.x, shape.y, shape.z}, {}, weights.blocks(), DataType::Float},
                         kCpu, 1);
  };
  ASSERT_NE(cells_with(sparser).y, cells_with(fuller).y);
  for (const int count : {1, 2, 4}) {
    expect_bits_of_one<float>(shape, sparser, fuller, count);
    expect_bits_of_one<float>(shape, fuller, with_change(fuller, difference(fuller, sparser)),
                              count);
  }
}

}  // namespace
}  // namespace tessera::distributed
