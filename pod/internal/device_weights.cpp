#include "tessera/pod/internal/device_weights.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod::internal {
namespace {

// A range of elements as one of whole blocks; the last block may be cut off.
Range in_blocks(Range elements, std::int64_t side) {
  return {elements.begin / side, ceil_div(elements.end, side)};
}

}  // namespace

std::int64_t Cell::values() const {
  std::int64_t sum = 0;
  for (const sparse::CheckedCsr<float>& part : parts) sum += std::ssize(part->values);
  return sum;
}

std::int64_t PartRuns::blocks() const {
  std::int64_t sum = 0;
  for (const Range& run : runs) sum += run.size();
  return sum;
}

PartRuns part_runs(const sparse::Csr<float>& matrix, Range block_rows, Range block_cols) {
  PartRuns part{block_rows, block_cols, {}};
  part.runs.reserve(std::size_t(block_rows.size()));
  for (std::int64_t row = block_rows.begin; row < block_rows.end; ++row) {
    const auto first = matrix.col.begin() + matrix.row_begin[std::size_t(row)];
    const auto last = matrix.col.begin() + matrix.row_begin[std::size_t(row + 1)];
    const auto begin = std::lower_bound(first, last, block_cols.begin);
    const auto end = std::lower_bound(begin, last, block_cols.end);
    part.runs.push_back({begin - matrix.col.begin(), end - matrix.col.begin()});
  }
  return part;
}

sparse::CheckedCsr<float> part_of(const sparse::Csr<float>& matrix, const PartRuns& part) {
  sparse::Csr<float> result;
  result.block = matrix.block;
  result.rows = part.block_rows.size() * matrix.block.rows;
  result.cols = part.block_cols.size() * matrix.block.cols;
  const std::int64_t area = matrix.block.area();
  result.col.reserve(std::size_t(part.blocks()));
  result.values.reserve(std::size_t(part.blocks() * area));
  for (const Range& run : part.runs) {
    for (std::int64_t b = run.begin; b < run.end; ++b)
      result.col.push_back(std::int32_t(matrix.col[std::size_t(b)] - part.block_cols.begin));
    result.values.insert(result.values.end(), matrix.values.begin() + run.begin * area,
                         matrix.values.begin() + run.end * area);
    result.row_begin.push_back(std::int64_t(result.col.size()));
  }
  return sparse::checked(std::move(result));
}

void copy_to_whole(const PartRuns& part, std::int64_t area, std::span<const float> values,
                   std::span<float> whole) {
  std::int64_t next = 0;
  for (const Range& run : part.runs) {
    const std::int64_t count = run.size() * area;
    std::copy_n(values.begin() + next, count, whole.begin() + run.begin * area);
    next += count;
  }
}

std::vector<Cell> cut_weights(const Problem& problem, const Dims& parts,
                              std::span<const sparse::CheckedCsr<float>> weights) {
  const BlockShape block = problem.block;
  std::vector<Cell> cells;
  for (std::int64_t g = 0; g < parts.g; ++g)
    for (std::int64_t x = 0; x < parts.x; ++x)
      for (std::int64_t y = 0; y < parts.y; ++y) {
        const Shares shares = shares_at(problem, parts, {g, x, y, 0});
        Cell& cell = cells.emplace_back();
        for (std::int64_t group = shares.g.begin; group < shares.g.end; ++group) {
          const sparse::Csr<float>& matrix = *weights[std::size_t(group)];
          cell.runs.push_back(
              part_runs(matrix, in_blocks(shares.x, block.rows), in_blocks(shares.y, block.cols)));
          cell.parts.push_back(part_of(matrix, cell.runs.back()));
        }
      }
  return cells;
}

}  // namespace tessera::pod::internal
