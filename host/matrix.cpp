#include "tessera/host/internal/matrix.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::host::internal {
namespace {

// Returns the number of shares of at most `step` elements, none of them empty.
std::int64_t parts_of(std::int64_t size, std::int64_t block, std::int64_t step) {
  const std::int64_t blocks = std::max<std::int64_t>(size / block, 1);
  const std::int64_t parts = ceil_div(blocks, std::max<std::int64_t>(step / block, 1));
  return ceil_div(blocks, ceil_div(blocks, parts));
}

partitioner::TileGrid grid_of(const sparse::Csr<float>& matrix, const HostCells& cells,
                              DataType type) {
  return {.size = {1, matrix.rows, matrix.cols, cells.z},
          .block = matrix.block,
          .z_grain = 1,
          .splits = {1, parts_of(matrix.rows, matrix.block.rows, cells.x),
                     parts_of(matrix.cols, matrix.block.cols, cells.y), 1},
          .data_type = type,
          .workers = 1,
          .word_bits = 32,
          .grad_w = false,
          .separate_grad_a = false,
          .meta_words = 0,
          .grad_a_words = 0,
          .blocks = 0};
}

// Returns true if all fields of the records are below 2^16. No field exceeds the capacity of a
// bucket, except the largest column word, the largest row and the number of the cell.
bool fits_16_bits(const partitioner::TileGrid& grid) {
  const std::int64_t scale = grid.block.is_element() ? bytes_of(grid.data_type) * grid.size.z : 1;
  return std::max({grid.meta_words, grid.blocks * grid.block.area(), grid.size.z,
                   grid.y_range(0).size() * scale, grid.x_range(0).size(), grid.buckets()}) <
         1 << 16;
}

// Adds an eighth of the capacity for changes of the pattern, which move blocks from cell to cell:
// three or more standard deviations for a third of the blocks. If words would outgrow 16 bits, they
// get 32 where blocks have many values, beside which words are few; elements get no spare capacity.
void add_spare_capacity(partitioner::TileGrid& grid) {
  constexpr std::int64_t kSpare = 8, kLeast = 2;
  partitioner::TileGrid larger = grid;
  larger.blocks = std::min(
      grid.blocks + std::max(grid.blocks / kSpare, kLeast),
      grid.x_range(0).size() / grid.block.rows * (grid.y_range(0).size() / grid.block.cols));
  larger.meta_words = grid.meta_words + larger.blocks - grid.blocks;
  constexpr std::int64_t kManyValues = 16;
  if (!fits_16_bits(larger) && grid.block.area() >= kManyValues) larger.word_bits = 32;
  if (larger.word_bits == 32 || fits_16_bits(larger)) grid = larger;
}

}  // namespace

void HostMatrix::count(const sparse::Csr<float>& matrix, partitioner::TileGrid& grid) {
  const std::int64_t x_step = grid.x_range(0).size() / matrix.block.rows;
  const std::int64_t y_step = grid.y_range(0).size() / matrix.block.cols;
  blocks_.assign(std::size_t(grid.buckets()), 0);
  rows_.assign(std::size_t(grid.buckets()), 0);
  for (std::int64_t r = 0; r < matrix.block_rows(); ++r) {
    const std::int32_t* const end = matrix.col.data() + matrix.row_begin[std::size_t(r) + 1];
    // Columns ascend, so a row is a few runs, one for each cell.
    for (const std::int32_t* at = matrix.col.data() + matrix.row_begin[std::size_t(r)]; at < end;) {
      const std::int64_t y = *at / y_step, run_end = (y + 1) * y_step;
      const std::int32_t* const first = at;
      while (at < end && *at < run_end) ++at;
      const auto bucket = std::size_t(grid.bucket_index(r / x_step, y, 0));
      blocks_[bucket] += at - first;
      ++rows_[bucket];
    }
  }
  const codelets::RecordShape shape{grid.block.is_element(), false, grid.workers};
  grid.meta_words = codelets::kEndMarkerWords;
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b] > 0)
      grid.meta_words =
          std::max(grid.meta_words,
                   codelets::record_words(shape, rows_[b], blocks_[b]) + codelets::kEndMarkerWords);
  grid.blocks = *std::max_element(blocks_.begin(), blocks_.end());
  if (fits_16_bits(grid)) grid.word_bits = 16;
  add_spare_capacity(grid);
}

// The rows of a record tell which rows the first cell of a cell row names.
void HostMatrix::find_unnamed_rows() {
  const std::int64_t block = grid().block.rows;
  unnamed_.clear();
  unnamed_begin_.assign(1, 0);
  for (std::int64_t x = 0; x < grid().splits.x; ++x) {
    const std::int64_t rows = x_range(x).size() / block;
    partitioner::find_named_rows(buckets_, grid().bucket_index(x, 0, 0),
                                 std::span(named_).first(std::size_t(rows)));
    for (std::int64_t row = 0; row < rows;) {
      const std::int64_t first = row;
      while (row < rows && named_[std::size_t(row)] == 0) ++row;
      if (row > first) unnamed_.push_back({first * block, row * block});
      while (row < rows && named_[std::size_t(row)] != 0) ++row;
    }
    unnamed_begin_.push_back(std::ssize(unnamed_));
  }
}

void HostMatrix::order_rows() {
  std::fill(weight_.begin(), weight_.end(), 0);
  for (std::int64_t b = 0; b < grid().buckets(); ++b)
    weight_[std::size_t(b / grid().splits.y)] += blocks_[std::size_t(b)];
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
    const std::int64_t of_a = weight_[std::size_t(a)], of_b = weight_[std::size_t(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
}

std::optional<partitioner::CellEdits> HostMatrix::prepare(
    std::span<const partitioner::BlockEdit> edits, std::vector<std::int32_t> shift,
    partitioner::Numbering numbering, std::int64_t value_bytes, Executor& executor) {
  partitioner::CellEdits made(buckets_, edits, std::move(shift), numbering, value_bytes, executor);
  if (!made.fit()) return std::nullopt;
  return made;
}

void HostMatrix::count_again() noexcept {
  for (std::int64_t b = 0; b < grid().buckets(); ++b) {
    const partitioner::RecordCounts counts = partitioner::count_record(buckets_, b);
    blocks_[std::size_t(b)] = counts.blocks;
    rows_[std::size_t(b)] = counts.rows;
  }
  find_unnamed_rows();
  order_rows();
}

std::int64_t HostMatrix::bytes() const {
  const auto of = [](const auto& list) { return list_bytes(list); };
  return std::visit(of, buckets_.meta) + of(buckets_.source) + of(blocks_) + of(rows_) +
         of(order_) + of(weight_) + of(named_) + of(unnamed_) + of(unnamed_begin_);
}

void HostMatrix::rename_source(std::span<const std::int32_t> number) {
  for (std::int32_t& block : buckets_.source)
    if (block >= 0) block = number[std::size_t(block)];
}

void HostMatrix::set(const sparse::Csr<float>& matrix, const HostCells& cells, DataType type,
                     Executor& executor) {
  partitioner::TileGrid grid = grid_of(matrix, cells, type);
  count(matrix, grid);
  const auto misfit = partitioner::encode_into(buckets_, matrix, grid, executor);
  TESSERA_ASSERT(!misfit);
  const std::int64_t block_rows = matrix.block_rows();
  named_.resize(std::size_t(block_rows));
  unnamed_.reserve(std::size_t(block_rows));  // so that changes of the pattern allocate nothing
  unnamed_begin_.reserve(std::size_t(grid.splits.x) + 1);
  weight_.resize(std::size_t(grid.splits.x));
  order_.resize(std::size_t(grid.splits.x));
  find_unnamed_rows();
  order_rows();
}

}  // namespace tessera::host::internal
