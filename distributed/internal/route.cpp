#include "tessera/distributed/internal/route.hpp"

#include <algorithm>
#include <utility>

#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed::internal {
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

// Returns the part of the matrix in a region that another region has, too.
sparse::Part TransposeRoute::common_part(const sparse::Csr<float>& matrix, const Region& region,
                                         const Region& other) {
  const auto inside = [](Range all, Range wanted, std::int64_t side) {
    const Range both = common(all, wanted);
    return Range{(both.begin - all.begin) * side, (both.end - all.begin) * side};
  };
  return find_part(matrix, inside(region.rows, other.rows, matrix.block.rows),
                   inside(region.columns, other.columns, matrix.block.cols));
}

// Returns places of the transpose, from the ranks that have them in R.
std::vector<sparse::BlockAt> TransposeRoute::moved(std::span<const sparse::BlockAt> own) {
  const Region &from = from_[std::size_t(ranks_.rank())], &to = to_[std::size_t(ranks_.rank())];
  std::vector<std::vector<sparse::BlockAt>> lists(to_.size());
  std::size_t rank = 0;
  for (const sparse::BlockAt& place : own) {
    const sparse::BlockAt at{static_cast<std::int32_t>(from.rows.begin + place.row),
                             static_cast<std::int32_t>(from.columns.begin + place.col)};
    // The next region is mostly this one or the next one.
    while (!to_[rank].has(at)) rank = (rank + 1) % to_.size();
    lists[rank].push_back(at);
  }
  std::vector<sparse::BlockAt> places;
  for (const auto& list : exchange_lists(ranks_, "places of the weights", lists))
    for (const sparse::BlockAt& at : list)
      places.push_back({at.col - static_cast<std::int32_t>(to.columns.begin),
                        at.row - static_cast<std::int32_t>(to.rows.begin)});
  return places;
}

sparse::Csr<float> TransposeRoute::pattern_of(const sparse::Csr<float>& own) {
  const Region& to = to_[std::size_t(ranks_.rank())];
  std::vector<sparse::BlockAt> all;
  all.reserve(own.col.size());
  for (std::int64_t row = 0; row < own.block_rows(); ++row)
    for (std::int64_t i = own.row_begin[std::size_t(row)]; i < own.row_begin[std::size_t(row) + 1];
         ++i)
      all.push_back({static_cast<std::int32_t>(row), own.col[std::size_t(i)]});
  sparse::Coo<float> places{.rows = to.columns.size() * block_.cols,
                            .cols = to.rows.size() * block_.rows,
                            .block = block_.transposed()};
  for (const sparse::BlockAt& at : moved(all)) {
    places.row.push_back(at.row);
    places.col.push_back(at.col);
  }
  places.values.resize(places.row.size() * std::size_t(block_.area()));
  return sparse::to_csr(places);
}

sparse::PatternChange TransposeRoute::change_of(const sparse::PatternChange& own) {
  std::vector<sparse::BlockAt> removed = moved(own.removed);
  return {.removed = std::move(removed), .added = moved(own.added)};
}

// Finds the parts of R that travel between this rank and each other one, and the places of those
// that come. `own` and `transpose` are the rank's parts.
void TransposeRoute::find_parts(const sparse::Csr<float>& own,
                                const sparse::Csr<float>& transpose) {
  const auto rank = std::size_t(ranks_.rank());
  const sparse::Csr<float> columns = sparse::transpose(transpose);
  std::vector<sparse::Part> out, in;
  for (std::size_t r = 0; r < to_.size(); ++r) {
    out.push_back(common_part(own, from_[rank], to_[r]));
    in.push_back(common_part(columns, to_[rank], from_[r]));
  }
  // The order of blocks is that of as many elements.
  const sparse::Csr<float> elements{
      transpose.block_rows(), transpose.block_cols(), {1, 1},
      transpose.row_begin,    transpose.col,          std::vector<float>(transpose.col.size())};
  place_ = sparse::transpose_order(elements);
  out_ = std::move(out);
  in_ = std::move(in);
}

std::span<const float> TransposeRoute::values_of(const sparse::Csr<float>& own,
                                                 const sparse::Csr<float>& transpose) {
  if (in_.empty()) find_parts(own, transpose);
  std::vector<std::vector<float>> lists;
  for (const sparse::Part& part : out_) lists.push_back(sparse::values_of(own, part));
  lists = exchange_lists(ranks_, "values of the weights", lists);
  values_.resize(place_.size() * std::size_t(block_.area()));
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const float* from = lists[rank].data();
    for (const Range run : in_[rank].runs)
      for (std::int64_t i = run.begin; i < run.end; ++i) {
        float* const to = values_.data() + place_[std::size_t(i)] * block_.area();
        for (std::int64_t r = 0; r < block_.rows; ++r)
          for (std::int64_t c = 0; c < block_.cols; ++c) to[c * block_.rows + r] = *from++;
      }
  }
  return values_;
}

}  // namespace tessera::distributed::internal
