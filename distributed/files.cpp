#include "tessera/distributed/files.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/row_file.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed {
namespace {

constexpr std::string_view kWhat = "places of the rows of a file";

// Returns the index that the first rank has made.
io::RowIndex index_of(Communicator& ranks, const std::string& path) {
  io::RowIndex index;
  if (ranks.rank() == 0) index = io::index_rows(path);
  const auto first = [&](std::vector<std::int64_t> list) {
    std::vector<std::vector<std::int64_t>> to(std::size_t(ranks.size()));
    if (ranks.rank() == 0) to.assign(to.size(), list);
    return exchange_lists(ranks, kWhat, std::move(to))[0];
  };
  const auto figures = first({index.rows, index.cols, index.has_values ? 1 : 0});
  index.rows = figures[0];
  index.cols = figures[1];
  index.has_values = figures[2] != 0;
  index.row_begin = first(std::move(index.row_begin));
  index.byte_begin = first(std::move(index.byte_begin));
  return index;
}

}  // namespace

FileRows read_own_rows(Communicator& ranks, const std::string& path, BlockShape block) {
  const io::RowIndex index = index_of(ranks, path);
  std::vector<std::int64_t> counts;
  for (std::int64_t row = 0; row < index.rows; row += block.rows) {
    const std::int64_t end = std::min(row + block.rows, index.rows);
    counts.push_back(index.row_begin[std::size_t(end)] - index.row_begin[std::size_t(row)]);
  }
  FileRows result{
      cut_evenly(counts, index.rows, block.rows, ranks.size()), index.cols, index.has_values, {}};
  const Range own = result.outputs.of(ranks.rank());
  result.rows = io::read_rows(path, index, own);
  if (block.is_element()) return result;
  result.rows = sparse::with_shape(result.rows, round_up(own.size(), block.rows),
                                   round_up(index.cols, block.cols));
  result.rows = sparse::with_block(result.rows, block);
  return result;
}

}  // namespace tessera::distributed
