#include "tessera/distributed/internal/columns.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed::internal {
namespace {

// Returns the first block column of each rank, and the number of block columns.
std::vector<std::int32_t> first_columns(const RowCut& inputs, std::int64_t block_cols) {
  std::vector<std::int32_t> first;
  for (const std::int64_t column : inputs.begin)
    first.push_back(static_cast<std::int32_t>(ceil_div(column, block_cols)));
  return first;
}

// Calls body(rank, row, begin, end) for the blocks [begin, end) of each block row that are in the
// columns of a rank: by row, then by rank.
template <class Body>
void for_each_segment(const sparse::Csr<float>& rows, const std::vector<std::int32_t>& first,
                      const Body& body) {
  for (std::int64_t row = 0; row < rows.block_rows(); ++row) {
    std::int64_t begin = rows.row_begin[std::size_t(row)];
    const std::int64_t row_end = rows.row_begin[std::size_t(row) + 1];
    for (std::size_t rank = 0; rank + 1 < first.size(); ++rank) {
      std::int64_t end = begin;
      while (end < row_end && rows.col[std::size_t(end)] < first[rank + 1]) ++end;
      body(rank, row, begin, end);
      begin = end;
    }
  }
}

using Values = std::vector<std::vector<float>>;

Values values_by_rank(const sparse::Csr<float>& rows, const std::vector<std::int32_t>& first) {
  Values values(first.size() - 1);
  const std::int64_t area = rows.block.area();
  for_each_segment(rows, first,
                   [&](std::size_t rank, std::int64_t, std::int64_t begin, std::int64_t end) {
                     values[rank].insert(values[rank].end(), rows.values.begin() + begin * area,
                                         rows.values.begin() + end * area);
                   });
  return values;
}

std::vector<float> joined(const Values& lists) {
  std::vector<float> all;
  for (const std::vector<float>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

// Each rank adds up one part of the columns and then tells everybody.
std::vector<std::int64_t> column_counts(Communicator& ranks, const sparse::Csr<float>& rows) {
  constexpr std::string_view kWhat = "numbers of blocks of the columns";
  std::vector<std::int64_t> own(std::size_t(rows.block_cols()));
  for (const std::int32_t col : rows.col) ++own[std::size_t(col)];
  const RowCut parts = cut_rows(rows.block_cols(), 1, ranks.size());
  std::vector<std::vector<std::int64_t>> to;
  for (int rank = 0; rank < ranks.size(); ++rank)
    to.emplace_back(own.begin() + parts.of(rank).begin, own.begin() + parts.of(rank).end);
  const auto counts = exchange_lists(ranks, kWhat, std::move(to));
  std::vector<std::int64_t> sum(counts[0].size());
  for (const auto& list : counts)
    std::transform(sum.begin(), sum.end(), list.begin(), sum.begin(), std::plus<>());
  own.clear();
  for (const auto& list : gather_lists(ranks, kWhat, sum))
    own.insert(own.end(), list.begin(), list.end());
  return own;
}

sparse::Csr<float> exchange_columns(Communicator& ranks, const RowCut& inputs,
                                    const sparse::Csr<float>& rows) {
  const std::vector<std::int32_t> first = first_columns(inputs, rows.block.cols);
  const auto all = std::size_t(ranks.size());
  std::vector<std::vector<std::int32_t>> lengths(all), cols(all);
  for_each_segment(rows, first,
                   [&](std::size_t rank, std::int64_t, std::int64_t begin, std::int64_t end) {
                     lengths[rank].push_back(static_cast<std::int32_t>(end - begin));
                     for (std::int64_t i = begin; i < end; ++i)
                       cols[rank].push_back(rows.col[std::size_t(i)] - first[rank]);
                   });
  lengths = exchange_lists(ranks, "numbers of blocks of the rows", std::move(lengths));
  cols = exchange_lists(ranks, "columns of the weights", std::move(cols));
  const auto own = std::size_t(ranks.rank());
  sparse::Csr<float> columns{.rows = 0, .cols = 0, .block = rows.block};
  columns.cols = std::int64_t(first[own + 1] - first[own]) * rows.block.cols;
  for (std::size_t rank = 0; rank < all; ++rank) {
    for (const std::int32_t length : lengths[rank])
      columns.row_begin.push_back(columns.row_begin.back() + length);
    columns.col.insert(columns.col.end(), cols[rank].begin(), cols[rank].end());
  }
  columns.rows = (std::ssize(columns.row_begin) - 1) * rows.block.rows;
  columns.values =
      joined(exchange_lists(ranks, "values of the weights", values_by_rank(rows, first)));
  return sparse::transpose(columns);
}

std::vector<std::int32_t> received_order(const sparse::Csr<float>& transpose) {
  std::vector<std::int32_t> next(std::size_t(transpose.block_cols()) + 1);
  for (const std::int32_t row : transpose.col) ++next[std::size_t(row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::int32_t> order(transpose.col.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[std::size_t(next[std::size_t(transpose.col[i])]++)] = static_cast<std::int32_t>(i);
  return order;
}

void exchange_values(Communicator& ranks, const RowCut& inputs, const sparse::Csr<float>& rows,
                     const std::vector<std::int32_t>& order, std::vector<float>& values) {
  const BlockShape block = rows.block;
  const Values lists = exchange_lists(ranks, "values of the weights",
                                      values_by_rank(rows, first_columns(inputs, block.cols)));
  values.resize(order.size() * std::size_t(block.area()));
  std::size_t i = 0;
  for (const std::vector<float>& list : lists)
    for (std::size_t at = 0; at < list.size(); at += std::size_t(block.area()), ++i) {
      float* const to = values.data() + std::int64_t(order[i]) * block.area();
      for (std::int64_t r = 0; r < block.rows; ++r)
        for (std::int64_t c = 0; c < block.cols; ++c)
          to[c * block.rows + r] = list[at + std::size_t(r * block.cols + c)];
    }
}

sparse::PatternChange exchange_change(Communicator& ranks, const RowCut& inputs, BlockShape block,
                                      std::int64_t first_block_row,
                                      const sparse::PatternChange& change) {
  const std::vector<std::int32_t> first = first_columns(inputs, block.cols);
  const auto own = std::size_t(ranks.rank());
  const auto exchange = [&](std::string_view what, const std::vector<sparse::BlockAt>& places) {
    std::vector<std::vector<sparse::BlockAt>> to(std::size_t(ranks.size()));
    for (const sparse::BlockAt& at : places) {
      const auto rank =
          std::upper_bound(first.begin() + 1, first.end() - 1, at.col) - (first.begin() + 1);
      to[std::size_t(rank)].push_back(
          {at.row + static_cast<std::int32_t>(first_block_row), at.col});
    }
    std::vector<sparse::BlockAt> transposed;
    for (const auto& list : exchange_lists(ranks, what, std::move(to)))
      for (const sparse::BlockAt& at : list) transposed.push_back({at.col - first[own], at.row});
    std::sort(transposed.begin(), transposed.end());
    return transposed;
  };
  return {exchange("places of removed weights", change.removed),
          exchange("places of added weights", change.added)};
}

}  // namespace tessera::distributed::internal
