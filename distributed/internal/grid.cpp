#include "tessera/distributed/internal/grid.hpp"

#include <fmt/format.h>

#include <numeric>

#include "tessera/base/error.hpp"

namespace tessera::distributed::internal {
namespace {

std::vector<int> every(int first, int step, int count) {
  std::vector<int> members;
  for (int i = 0; i < count; ++i) members.push_back(first + i * step);
  return members;
}

Range pieces(const RowCut& cut, int first, int count) {
  return {cut.begin[std::size_t(first)], cut.begin[std::size_t(first + count)]};
}

// Returns the cut of the pieces [first, first + count) among themselves.
RowCut among(const RowCut& cut, int first, int count) {
  RowCut part;
  part.begin.clear();
  for (int i = 0; i <= count; ++i)
    part.begin.push_back(cut.begin[std::size_t(first + i)] - cut.begin[std::size_t(first)]);
  return part;
}

// Adds what follows from run and part.
Place with_ranges(Place place, const RowCut& rows, const RowCut& cols, int runs, int parts) {
  const int piece = place.run * parts + place.part, input = place.part * runs + place.run;
  place.rows = pieces(rows, place.run * parts, parts);
  place.columns = pieces(cols, place.part * runs, runs);
  place.outputs = rows.of(piece);
  place.inputs = cols.of(input);
  place.operand = among(cols, place.part * runs, runs);
  place.results = among(rows, place.run * parts, parts);
  return place;
}

}  // namespace

Place Grid::forward(int rank) const {
  const int run = rank / replicas, part = rank % replicas;
  const Place place{every(part, replicas, runs()), every(run * replicas, 1, replicas), run, part};
  return with_ranges(place, rows, cols, runs(), replicas);
}

Place Grid::transposed(int rank) const {
  const int run = rank % runs(), part = rank / runs();
  const Place place{every(part * runs(), 1, runs()), every(run, runs(), replicas), run, part};
  return with_ranges(place, cols, rows, runs(), replicas);
}

std::vector<std::int64_t> column_counts(const sparse::Csr<float>& matrix) {
  std::vector<std::int64_t> counts(std::size_t(matrix.block_cols()));
  for (const std::int32_t col : matrix.col) ++counts[std::size_t(col)];
  return counts;
}

Grid grid_of(const Problem& problem, const Cut& cut, std::span<const std::int64_t> row_begin,
             std::span<const std::int64_t> counts, int ranks) {
  std::vector<std::int64_t> col_begin(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), col_begin.begin() + 1);
  const auto runs = [&](const std::optional<RowCut>& given, std::span<const std::int64_t> begin,
                        std::int64_t size, std::int64_t side) {
    return given ? *given : cut_evenly(begin, size, side, ranks);
  };
  const Grid grid{.rows = runs(cut.rows, row_begin, problem.size.x, problem.block.rows),
                  .cols = runs(cut.cols, col_begin, problem.size.y, problem.block.cols),
                  .replicas = cut.replicas};
  for (int rank = 0; rank < ranks; ++rank)
    if (grid.forward(rank).columns.size() == 0 ||
        (problem.grad_a && grid.transposed(rank).columns.size() == 0))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("set_weights: a part of the rows or columns is empty; {} replicas "
                              "are too many for this matrix, use fewer",
                              cut.replicas));
  return grid;
}

}  // namespace tessera::distributed::internal
