#include "tessera/distributed/internal/grid.hpp"

#include <fmt/format.h>

#include <numeric>

#include "tessera/base/error.hpp"

namespace tessera::distributed::internal {
namespace {

// Returns rank_of(i) for each i below `count`.
template <class RankOf>
std::vector<int> list_of(int count, const RankOf& rank_of) {
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(rank_of(i));
  return ranks;
}

// Returns the cut of the pieces [first, first + count) among themselves.
RowCut among(const RowCut& cut, int first, int count) {
  RowCut part;
  part.begin.clear();
  for (int i = 0; i <= count; ++i)
    part.begin.push_back(cut.begin[std::size_t(first + i)] - cut.begin[std::size_t(first)]);
  return part;
}

Range pieces(const RowCut& cut, int first, int count) {
  return {cut.begin[std::size_t(first)], cut.begin[std::size_t(first + count)]};
}

}  // namespace

// Returns the place without its ranks, in a matrix whose rows and columns are cut so.
Place Grid::place(const RowCut& m_rows, const RowCut& m_cols, int run, int part) const {
  return {.rows = pieces(m_rows, run * replicas, replicas),
          .columns = pieces(m_cols, part * runs(), runs()),
          .operand = among(m_cols, part * runs(), runs()),
          .results = among(m_rows, run * replicas, replicas)};
}

Place Grid::forward(int rank) const {
  const int run = rank / replicas, part = rank % replicas;
  Place place = this->place(rows, cols, run, part);
  place.of_part = list_of(runs(), [&](int i) { return i * replicas + part; });
  place.of_run = list_of(replicas, [&](int k) { return run * replicas + k; });
  place.to = place.from = place.of_run;
  return place;
}

Place Grid::transposed(int rank) const {
  const int run = rank % runs(), part = rank / runs();
  Place place = this->place(cols, rows, run, part);
  place.of_part = list_of(runs(), [&](int i) { return part * runs() + i; });
  place.of_run = list_of(replicas, [&](int k) { return k * runs() + run; });
  place.to = list_of(replicas, [&](int k) {
    const int piece = run * replicas + k;
    return piece % runs() * replicas + piece / runs();
  });
  place.from = list_of(replicas, [&](int k) { return k * runs() + input_piece(rank) / replicas; });
  return place;
}

std::vector<std::int64_t> column_counts(const sparse::Csr<float>& matrix) {
  std::vector<std::int64_t> counts(std::size_t(matrix.block_cols()));
  for (const std::int32_t col : matrix.col) ++counts[std::size_t(col)];
  return counts;
}

Grid grid_of(const Problem& problem, int replicas, const RowCut& rows,
             std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> col_begin(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), col_begin.begin() + 1);
  const Grid grid{.rows = rows,
                  .cols = cut_evenly(col_begin, problem.size.y, problem.block.cols, rows.ranks()),
                  .replicas = replicas};
  for (int rank = 0; rank < grid.ranks(); ++rank)
    if (grid.forward(rank).columns.size() == 0 ||
        (problem.grad_a && grid.transposed(rank).columns.size() == 0))
      throw_invalid(
          fmt::format("set_weights: a part of the rows or columns is empty; {} replicas "
                      "are too many for this matrix, use fewer",
                      replicas));
  return grid;
}

}  // namespace tessera::distributed::internal
