#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/record_reader.hpp"

namespace tessera::partitioner {
namespace {

// One block of the matrix and the value slot that holds it.
struct Entry {
  std::int32_t row = 0, col = 0;  // block coordinates
  std::int64_t slot = 0;
};

void check_length(std::string_view what, std::size_t length, std::int64_t expected) {
  if (static_cast<std::int64_t>(length) == expected) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("decode: {} {} given, {} expected", length, what, expected));
}

template <class Word>
std::span<const Word> part_of(const std::vector<Word>& words, std::int64_t bucket,
                              std::int64_t length) {
  return std::span(words).subspan(static_cast<std::size_t>(bucket * length),
                                  static_cast<std::size_t>(length));
}

void add_entries(const TileGrid& grid, const internal::RecordRows& record, std::int64_t slot,
                 std::vector<Entry>& entries) {
  const std::int64_t first_row = grid.x_range(record.x).begin / grid.block.rows;
  const std::int64_t first_col = grid.y_range(record.y).begin / grid.block.cols;
  for (const auto& row : record.rows)
    for (std::int32_t i = row.first; i < row.first + row.count; ++i)
      entries.push_back({static_cast<std::int32_t>(first_row + row.row),
                         static_cast<std::int32_t>(first_col + record.col[std::size_t(i)]),
                         slot++});
}

template <class Word>
std::vector<Entry> read_entries(const TileGrid& grid, const std::vector<Word>& meta,
                                const std::vector<Word>& grad_a) {
  check_length("forward words", meta.size(), grid.buckets() * grid.meta_words);
  check_length("GradA words", grad_a.size(), grid.buckets() * grid.grad_a_words);
  internal::RecordReader<Word> reader(grid);
  internal::RecordRows record;
  std::vector<Entry> entries;
  for (std::int64_t b = 0; b < grid.buckets(); ++b) {
    reader.start(b, part_of(meta, b, grid.meta_words), part_of(grad_a, b, grid.grad_a_words));
    std::int64_t held = 0;
    while (reader.read(record)) {
      add_entries(grid, record, b * grid.blocks + held, entries);
      held += record.blocks();
      if (held > grid.blocks)
        internal::reject_word(b, 0,
                              fmt::format("the bucket's records have {} blocks or more; it "
                                          "has room for {}",
                                          held, grid.blocks));
    }
  }
  return entries;
}

std::vector<Entry> read_entries(const Buckets& buckets) {
  if (buckets.grid.word_bits == 16) {
    const auto* meta = std::get_if<std::vector<std::uint16_t>>(&buckets.meta);
    const auto* grad_a = std::get_if<std::vector<std::uint16_t>>(&buckets.grad_a_meta);
    if (meta && grad_a) return read_entries(buckets.grid, *meta, *grad_a);
  } else {
    const auto* meta = std::get_if<std::vector<std::uint32_t>>(&buckets.meta);
    const auto* grad_a = std::get_if<std::vector<std::uint32_t>>(&buckets.grad_a_meta);
    if (meta && grad_a) return read_entries(buckets.grid, *meta, *grad_a);
  }
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("decode: the words are not of the grid's {} bits", buckets.grid.word_bits));
}

// By row, then column. Counting the rows first keeps this linear but for the sort inside each row.
template <class T>
std::vector<Entry> sort_entries(const TileGrid& grid, const std::vector<Entry>& entries,
                                sparse::Csr<T>& matrix) {
  matrix.row_begin.assign(static_cast<std::size_t>(matrix.block_rows()) + 1, 0);
  for (const Entry& e : entries) ++matrix.row_begin[std::size_t(e.row) + 1];
  for (std::size_t r = 1; r < matrix.row_begin.size(); ++r)
    matrix.row_begin[r] += matrix.row_begin[r - 1];
  std::vector<std::int64_t> next = matrix.row_begin;
  std::vector<Entry> sorted(entries.size());
  for (const Entry& e : entries) sorted[std::size_t(next[std::size_t(e.row)]++)] = e;
  for (std::size_t r = 0; r + 1 < matrix.row_begin.size(); ++r)
    std::sort(sorted.begin() + matrix.row_begin[r], sorted.begin() + matrix.row_begin[r + 1],
              [](const Entry& a, const Entry& b) {
                return a.col != b.col ? a.col < b.col : a.slot < b.slot;
              });
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].row == sorted[i - 1].row && sorted[i].col == sorted[i - 1].col)
      internal::reject_word(
          sorted[i].slot / grid.blocks, 0,
          fmt::format("block ({}, {}) of this bucket also lies in bucket {}", sorted[i].row,
                      sorted[i].col, sorted[i - 1].slot / grid.blocks));
  return sorted;
}

}  // namespace

template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values) {
  const TileGrid& grid = buckets.grid;
  check(grid);
  check_length("values", bucket_values.size(), grid.buckets() * buckets.values_per_bucket());
  sparse::Csr<T> matrix;
  matrix.rows = grid.size.x;
  matrix.cols = grid.size.y;
  matrix.block = grid.block;
  const auto sorted = sort_entries(grid, read_entries(buckets), matrix);
  const std::int64_t area = grid.block.area();
  matrix.col.reserve(sorted.size());
  matrix.values.reserve(sorted.size() * static_cast<std::size_t>(area));
  for (const Entry& e : sorted) {
    matrix.col.push_back(e.col);
    const auto from = bucket_values.begin() + e.slot * area;
    matrix.values.insert(matrix.values.end(), from, from + area);
  }
  return matrix;
}

template sparse::Csr<float> decode(const Buckets&, std::span<const float>);
template sparse::Csr<double> decode(const Buckets&, std::span<const double>);

}  // namespace tessera::partitioner
