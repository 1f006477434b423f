#include "tessera/sparse/part.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::sparse {

std::int64_t Part::blocks() const {
  std::int64_t sum = 0;
  for (const Range& run : runs) sum += run.size();
  return sum;
}

Range in_blocks(Range elements, std::int64_t side) {
  return {ceil_div(elements.begin, side), ceil_div(elements.end, side)};
}

template <class T>
Part find_part(const Csr<T>& matrix, Range rows, Range cols) {
  Part part{in_blocks(rows, matrix.block.rows), in_blocks(cols, matrix.block.cols), {}};
  part.runs.reserve(std::size_t(part.block_rows.size()));
  for (std::int64_t row = part.block_rows.begin; row < part.block_rows.end; ++row) {
    const auto first = matrix.col.begin() + matrix.row_begin[std::size_t(row)];
    const auto last = matrix.col.begin() + matrix.row_begin[std::size_t(row + 1)];
    const auto begin = std::lower_bound(first, last, part.block_cols.begin);
    const auto end = std::lower_bound(begin, last, part.block_cols.end);
    part.runs.push_back({begin - matrix.col.begin(), end - matrix.col.begin()});
  }
  return part;
}

template <class T>
std::vector<T> values_of(const Csr<T>& matrix, const Part& part) {
  const std::int64_t area = matrix.block.area();
  std::vector<T> values;
  values.reserve(std::size_t(part.blocks() * area));
  for (const Range& run : part.runs)
    values.insert(values.end(), matrix.values.begin() + run.begin * area,
                  matrix.values.begin() + run.end * area);
  return values;
}

template <class T>
Csr<T> part_of(const Csr<T>& matrix, const Part& part) {
  Csr<T> result;
  result.block = matrix.block;
  result.rows = part.block_rows.size() * matrix.block.rows;
  result.cols = part.block_cols.size() * matrix.block.cols;
  result.values = values_of(matrix, part);
  result.col.reserve(std::size_t(part.blocks()));
  for (const Range& run : part.runs) {
    for (std::int64_t b = run.begin; b < run.end; ++b)
      result.col.push_back(std::int32_t(matrix.col[std::size_t(b)] - part.block_cols.begin));
    result.row_begin.push_back(std::int64_t(result.col.size()));
  }
  return result;
}

void copy_to_whole(const Part& part, std::int64_t area, std::span<const float> values,
                   std::span<float> whole) {
  std::int64_t next = 0;
  for (const Range& run : part.runs) {
    const std::int64_t count = run.size() * area;
    std::copy_n(values.begin() + next, count, whole.begin() + run.begin * area);
    next += count;
  }
}

template Part find_part(const Csr<float>&, Range, Range);
template Part find_part(const Csr<double>&, Range, Range);
template std::vector<float> values_of(const Csr<float>&, const Part&);
template std::vector<double> values_of(const Csr<double>&, const Part&);
template Csr<float> part_of(const Csr<float>&, const Part&);
template Csr<double> part_of(const Csr<double>&, const Part&);

}  // namespace tessera::sparse
