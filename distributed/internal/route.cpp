#include "tessera/distributed/internal/route.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/part.hpp"

namespace tessera::distributed::internal {
namespace {

std::vector<sparse::BlockAt> places_of(const sparse::Csr<float>& matrix) {
  std::vector<sparse::BlockAt> places;
  places.reserve(matrix.col.size());
  for (std::int64_t row = 0; row < matrix.block_rows(); ++row)
    for (std::int64_t i = matrix.row_begin[std::size_t(row)];
         i < matrix.row_begin[std::size_t(row) + 1]; ++i)
      places.push_back({static_cast<std::int32_t>(row), matrix.col[std::size_t(i)]});
  return places;
}

}  // namespace

TransposeRoute::TransposeRoute(Communicator& ranks, const Grid& grid, BlockShape block)
    : ranks_(ranks), block_(block) {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const Place from = grid.forward(rank), to = grid.transposed(rank);
    from_.push_back(
        {sparse::in_blocks(from.rows, block.rows), sparse::in_blocks(from.columns, block.cols)});
    to_.push_back(
        {sparse::in_blocks(to.columns, block.rows), sparse::in_blocks(to.rows, block.cols)});
  }
}

// Callers walk along rows or columns, so the next region is mostly this one or the next one.
std::size_t TransposeRoute::find(const std::vector<Region>& regions, std::size_t first,
                                 std::int64_t row, std::int64_t col) {
  while (!regions[first].has(row, col)) first = (first + 1) % regions.size();
  return first;
}

// Sends places of this rank's part of R to the ranks that have them in the transpose, and returns
// the ones that arrive, as places of R, rank by rank.
std::vector<sparse::BlockAt> TransposeRoute::exchange(std::string_view what,
                                                      std::span<const sparse::BlockAt> places) {
  const Region& own = from_[std::size_t(ranks_.rank())];
  std::vector<std::vector<sparse::BlockAt>> lists(to_.size());
  std::size_t rank = 0;
  for (const sparse::BlockAt& at : places) {
    const std::int64_t row = own.rows.begin + at.row, col = own.columns.begin + at.col;
    rank = find(to_, rank, row, col);
    lists[rank].push_back({static_cast<std::int32_t>(row), static_cast<std::int32_t>(col)});
  }
  std::vector<sparse::BlockAt> all;
  for (const auto& list : exchange_lists(ranks_, what, std::move(lists)))
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

sparse::Csr<float> TransposeRoute::transpose_of(const sparse::Csr<float>& own) {
  const Region& region = to_[std::size_t(ranks_.rank())];
  sparse::Coo<float> places{.rows = region.columns.size() * block_.cols,
                            .cols = region.rows.size() * block_.rows,
                            .block = block_.transposed()};
  for (const sparse::BlockAt& at : exchange("places of the weights", places_of(own))) {
    places.row.push_back(at.col - static_cast<std::int32_t>(region.columns.begin));
    places.col.push_back(at.row - static_cast<std::int32_t>(region.rows.begin));
  }
  places.values.resize(places.row.size() * std::size_t(block_.area()));
  sparse::Csr<float> transpose = sparse::to_csr(places);
  set_pattern(transpose);
  const std::span<const float> values = values_of(own);
  transpose.values.assign(values.begin(), values.end());
  return transpose;
}

sparse::PatternChange TransposeRoute::change_of(const sparse::PatternChange& change) {
  const Region& region = to_[std::size_t(ranks_.rank())];
  const auto transposed = [&](std::vector<sparse::BlockAt> places) {
    for (sparse::BlockAt& at : places)
      at = {at.col - static_cast<std::int32_t>(region.columns.begin),
            at.row - static_cast<std::int32_t>(region.rows.begin)};
    std::ranges::sort(places);
    return places;
  };
  return {transposed(exchange("places of removed weights", change.removed)),
          transposed(exchange("places of added weights", change.added))};
}

void TransposeRoute::reserve(std::int64_t blocks) {
  order_.reserve(std::size_t(blocks));
  senders_.reserve(std::size_t(blocks));
}

void TransposeRoute::set_pattern(const sparse::Csr<float>& transpose) {
  const Region& region = to_[std::size_t(ranks_.rank())];
  next_.assign(std::size_t(transpose.block_cols()) + 1, 0);
  for (const std::int32_t row : transpose.col) ++next_[std::size_t(row) + 1];
  std::partial_sum(next_.begin(), next_.end(), next_.begin());
  order_.resize(transpose.col.size());
  senders_.resize(transpose.col.size());
  std::size_t rank = 0;
  for (std::int64_t col = 0; col < transpose.block_rows(); ++col)
    for (std::int64_t i = transpose.row_begin[std::size_t(col)];
         i < transpose.row_begin[std::size_t(col) + 1]; ++i) {
      const std::int32_t row = transpose.col[std::size_t(i)];
      const auto to = std::size_t(next_[std::size_t(row)]++);
      rank = find(from_, rank, region.rows.begin + row, region.columns.begin + col);
      order_[to] = static_cast<std::int32_t>(i);
      senders_[to] = static_cast<std::int32_t>(rank);
    }
}

std::span<const float> TransposeRoute::values_of(const sparse::Csr<float>& own) {
  const Region& region = from_[std::size_t(ranks_.rank())];
  const std::int64_t area = block_.area();
  std::vector<std::vector<float>> lists(to_.size());
  std::size_t rank = 0;
  for (std::int64_t row = 0; row < own.block_rows(); ++row)
    for (std::int64_t i = own.row_begin[std::size_t(row)],
                      end = own.row_begin[std::size_t(row) + 1];
         i < end;) {
      rank =
          find(to_, rank, region.rows.begin + row, region.columns.begin + own.col[std::size_t(i)]);
      const std::int64_t first = i, limit = to_[rank].columns.end - region.columns.begin;
      while (i < end && own.col[std::size_t(i)] < limit) ++i;
      lists[rank].insert(lists[rank].end(), own.values.begin() + first * area,
                         own.values.begin() + i * area);
    }
  lists = exchange_lists(ranks_, "values of the weights", std::move(lists));
  values_.resize(order_.size() * std::size_t(area));
  std::vector<const float*> from;
  for (const std::vector<float>& list : lists) from.push_back(list.data());
  for (std::size_t block = 0; block < order_.size(); ++block) {
    const float*& at = from[std::size_t(senders_[block])];
    float* const to = values_.data() + order_[block] * area;
    for (std::int64_t r = 0; r < block_.rows; ++r)
      for (std::int64_t c = 0; c < block_.cols; ++c) to[c * block_.rows + r] = *at++;
  }
  return values_;
}

}  // namespace tessera::distributed::internal
