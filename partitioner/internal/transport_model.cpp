#include "tessera/partitioner/internal/transport_model.hpp"

#include <algorithm>

#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::partitioner::internal {
namespace {

// The row lengths of a cell, longest first. Rows that z shares cut are joined.
std::vector<std::int64_t> row_lengths(const Holdings& holdings, std::int64_t cell) {
  const std::int64_t z = holdings.grid().splits.z;
  std::vector<Run> runs;
  for (std::int64_t b = cell * z; b < (cell + 1) * z; ++b) {
    const auto more = holdings.pieces().runs_of(b);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.row < b.row; });
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i == 0 || runs[i].row != runs[i - 1].row) lengths.push_back(0);
    lengths.back() += runs[i].count;
  }
  std::sort(lengths.rbegin(), lengths.rend());
  return lengths;
}

// The most blocks that fit in `words` if rows have these lengths; the last row may be cut.
template <class Lengths>
std::int64_t most_blocks(const Lengths& lengths, std::int64_t words) {
  std::int64_t blocks = 0;
  for (const std::int64_t length : lengths) {
    words -= kRowWords;
    if (words <= 0) break;
    blocks += std::min(length, words);
    words -= length;
  }
  return blocks;
}

struct CellCapacity {
  Capacity used, free;
  bool overfull = false;
};

CellCapacity room_of(const Holdings& holdings, std::int64_t cell) {
  const std::int64_t z = holdings.grid().splits.z;
  CellCapacity room;
  for (std::int64_t b = cell * z; b < (cell + 1) * z; ++b) {
    room.used += holdings.used(b);
    room.free += holdings.free(b);
    room.overfull = room.overfull || holdings.overfull(b);
  }
  return room;
}

}  // namespace

Transport optimistic_model(const Holdings& holdings) {
  const TileGrid& grid = holdings.grid();
  const Capacity capacity = holdings.capacity();
  const std::int64_t row_words =
      std::max<std::int64_t>(0, capacity.words - holdings.header().words);
  const std::int64_t width = grid.y_range(0).size() / grid.block.cols;
  const std::int64_t full_rows = row_words / (kRowWords + width);
  const std::int64_t rest = row_words - full_rows * (kRowWords + width) - kRowWords;
  const std::int64_t in_bucket =
      std::min(capacity.blocks, full_rows * width + std::max<std::int64_t>(0, rest));
  Transport model{grid.splits, {}, {}, {}};
  for (std::int64_t cell = 0; cell < holdings.cells(); ++cell) {
    const CellCapacity room = room_of(holdings, cell);
    std::int64_t most = room.used.blocks;
    if (room.overfull)
      most = std::min({most, grid.splits.z * capacity.blocks,
                       most_blocks(row_lengths(holdings, cell), grid.splits.z * row_words)});
    model.blocks.push_back(room.used.blocks);
    model.most_in_one.push_back(most);
    model.capacity.push_back(std::max(most, grid.splits.z * in_bucket));
  }
  return model;
}

Transport likely_model(const Holdings& holdings, const Transport& optimistic) {
  const Pieces& pieces = holdings.pieces();
  const auto runs = pieces.run_count();
  Transport model = optimistic;
  for (std::size_t cell = 0; cell < model.blocks.size(); ++cell) {
    const CellCapacity room = room_of(holdings, static_cast<std::int64_t>(cell));
    const std::int64_t words = room.free.words - holdings.header().words;
    // A row of average length needs one word per block and kRowWords words.
    const std::int64_t in_words =
        words <= 0 ? 0 : words * pieces.items() / (pieces.items() + kRowWords * runs);
    const std::int64_t more = std::max<std::int64_t>(0, std::min(room.free.blocks, in_words));
    model.capacity[cell] = std::min(model.capacity[cell],
                                    std::max(model.most_in_one[cell], model.blocks[cell] + more));
  }
  return model;
}

}  // namespace tessera::partitioner::internal
