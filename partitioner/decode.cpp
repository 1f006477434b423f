#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/prefetch.hpp"
#include "tessera/partitioner/internal/record_reader.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

// Blocks of one row of the matrix that are in one row of a record.
struct Segment {
  std::int32_t row = 0, count = 0;  // block row of the matrix
  std::int32_t group = 0;
  std::int64_t col = 0;   // first position in the columns of the group
  std::int64_t slot = 0;  // value slot of its first block
};

// The content of some neighbouring buckets.
struct Group {
  std::vector<Segment> segments;
  std::vector<std::int32_t> col;  // block columns of the matrix
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

void add_segments(const TileGrid& grid, const internal::RecordRows& record, std::int64_t slot,
                  Group& group) {
  const auto first_row = static_cast<std::int32_t>(grid.x_range(record.x).begin / grid.block.rows);
  const auto first_col = static_cast<std::int32_t>(grid.y_range(record.y).begin / grid.block.cols);
  const std::int64_t base = std::ssize(group.col);
  for (const auto& row : record.rows)
    group.segments.push_back(
        {first_row + row.row, row.count, 0, base + row.first, slot + row.first});
  group.col.resize(group.col.size() + record.col.size());
  std::transform(record.col.begin(), record.col.end(), group.col.begin() + base,
                 [first_col](std::int32_t col) { return first_col + col; });
}

template <class Word>
struct Lists {
  const std::vector<Word>&meta, &grad_a;
};

template <class Word>
void read_group(const TileGrid& grid, const Lists<Word>& lists, Range range, Group& group) {
  internal::RecordReader<Word> reader(grid);
  internal::RecordRows record;
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    reader.start(b, part_of(lists.meta, b, grid.meta_words),
                 part_of(lists.grad_a, b, grid.grad_a_words));
    std::int64_t held = 0;
    while (reader.read(record)) {
      add_segments(grid, record, b * grid.blocks + held, group);
      held += record.blocks;
      if (held > grid.blocks)
        internal::reject_word(b, 0,
                              fmt::format("the bucket's records have {} blocks or more; it "
                                          "has room for {}",
                                          held, grid.blocks));
    }
  }
}

template <class Word>
std::vector<Group> read_groups(const TileGrid& grid, const Lists<Word>& lists, Executor& executor) {
  check_length("forward words", lists.meta.size(), grid.buckets() * grid.meta_words);
  check_length("GradA words", lists.grad_a.size(), grid.buckets() * grid.grad_a_words);
  const std::int64_t count = std::min<std::int64_t>(grid.buckets(), 8 * executor.threads());
  std::vector<Group> groups(static_cast<std::size_t>(count));
  executor.for_each(count, [&](std::int64_t g) {
    read_group(grid, lists, even_part(grid.buckets(), count, g),
               groups[static_cast<std::size_t>(g)]);
  });
  return groups;
}

std::vector<Group> read_groups(const Buckets& buckets, Executor& executor) {
  if (buckets.grid.word_bits == 16) {
    const auto* meta = std::get_if<std::vector<std::uint16_t>>(&buckets.meta);
    const auto* grad_a = std::get_if<std::vector<std::uint16_t>>(&buckets.grad_a_meta);
    if (meta && grad_a) return read_groups<std::uint16_t>(buckets.grid, {*meta, *grad_a}, executor);
  } else {
    const auto* meta = std::get_if<std::vector<std::uint32_t>>(&buckets.meta);
    const auto* grad_a = std::get_if<std::vector<std::uint32_t>>(&buckets.grad_a_meta);
    if (meta && grad_a) return read_groups<std::uint32_t>(buckets.grid, {*meta, *grad_a}, executor);
  }
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("decode: the words are not of the grid's {} bits", buckets.grid.word_bits));
}

// Joins the segments of each row. Rows are independent of each other.
template <class T>
class Assembler {
 public:
  Assembler(const TileGrid& grid, const std::vector<Group>& groups, std::span<const T> values,
            sparse::Csr<T>& matrix)
      : grid_(grid), groups_(groups), values_(values), matrix_(matrix) {
    sort_segments();
    matrix_.col.resize(static_cast<std::size_t>(matrix_.row_begin.back()));
    matrix_.values.resize(matrix_.col.size() * static_cast<std::size_t>(grid.block.area()));
  }

  void put_row(std::int64_t row) {
    const auto of_row = segments_of(row);
    std::sort(of_row.begin(), of_row.end(), [this](const Segment& a, const Segment& b) {
      return std::pair(*columns(a), a.slot) < std::pair(*columns(b), b.slot);
    });
    std::int64_t at = matrix_.row_begin[static_cast<std::size_t>(row)];
    const std::int64_t begin = at, area = grid_.block.area();
    for (std::size_t i = 0; i < of_row.size(); ++i) {
      const Segment& s = of_row[i];
      if (i + 1 < of_row.size())
        internal::prefetch_block(values_.data() + of_row[i + 1].slot * area, area);
      std::copy_n(columns(s), s.count, matrix_.col.begin() + at);
      std::copy_n(values_.begin() + s.slot * area, s.count * area,
                  matrix_.values.begin() + at * area);
      at += s.count;
    }
    const auto col = std::span<const std::int32_t>(matrix_.col).subspan(begin, at - begin);
    if (!sparse::is_legal_row(col, matrix_.block_cols())) merge_row(row, of_row);
  }

 private:
  struct Entry {
    std::int32_t col = 0;
    std::int64_t slot = 0;
  };

  const std::int32_t* columns(const Segment& s) const {
    return groups_[static_cast<std::size_t>(s.group)].col.data() + s.col;
  }
  std::span<Segment> segments_of(std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    return std::span(segments_).subspan(segment_begin_[r],
                                        segment_begin_[r + 1] - segment_begin_[r]);
  }

  // Sorts the segments by rows with a counting sort, and computes row_begin.
  void sort_segments() {
    const auto rows = static_cast<std::size_t>(matrix_.block_rows());
    matrix_.row_begin.assign(rows + 1, 0);
    segment_begin_.assign(rows + 1, 0);
    for (const Group& group : groups_)
      for (const Segment& s : group.segments) {
        ++segment_begin_[std::size_t(s.row) + 1];
        matrix_.row_begin[std::size_t(s.row) + 1] += s.count;
      }
    for (std::size_t r = 1; r <= rows; ++r) {
      segment_begin_[r] += segment_begin_[r - 1];
      matrix_.row_begin[r] += matrix_.row_begin[r - 1];
    }
    segments_.resize(segment_begin_.back());
    std::vector<std::size_t> next = segment_begin_;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (Segment s : groups_[g].segments) {
        s.group = static_cast<std::int32_t>(g);
        segments_[next[std::size_t(s.row)]++] = s;
      }
  }

  // Handles the rare row in which one bucket holds blocks between those of another.
  void merge_row(std::int64_t row, std::span<const Segment> of_row) {
    std::vector<Entry> entries;
    for (const Segment& s : of_row)
      for (std::int32_t i = 0; i < s.count; ++i) entries.push_back({columns(s)[i], s.slot + i});
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.col, a.slot) < std::pair(b.col, b.slot);
    });
    const std::int64_t area = grid_.block.area();
    std::int64_t at = matrix_.row_begin[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < entries.size(); ++i, ++at) {
      if (i > 0 && entries[i].col == entries[i - 1].col)
        reject_twins(row, entries[i - 1], entries[i]);
      matrix_.col[static_cast<std::size_t>(at)] = entries[i].col;
      std::copy_n(values_.begin() + entries[i].slot * area, area,
                  matrix_.values.begin() + at * area);
    }
  }

  [[noreturn]] void reject_twins(std::int64_t row, const Entry& first, const Entry& second) const {
    internal::reject_word(second.slot / grid_.blocks, 0,
                          fmt::format("block ({}, {}) of this bucket also lies in bucket {}", row,
                                      second.col, first.slot / grid_.blocks));
  }

  const TileGrid& grid_;
  const std::vector<Group>& groups_;
  std::span<const T> values_;
  sparse::Csr<T>& matrix_;
  std::vector<Segment> segments_;           // by row
  std::vector<std::size_t> segment_begin_;  // [block rows + 1]
};

}  // namespace

template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values,
                      Executor& executor) {
  const TileGrid& grid = buckets.grid;
  check(grid);
  check_length("values", bucket_values.size(), grid.buckets() * buckets.values_per_bucket());
  sparse::Csr<T> matrix;
  matrix.rows = grid.size.x;
  matrix.cols = grid.size.y;
  matrix.block = grid.block;
  const auto groups = read_groups(buckets, executor);
  Assembler<T> assembler(grid, groups, bucket_values, matrix);
  executor.for_each(matrix.block_rows(), [&](std::int64_t row) { assembler.put_row(row); });
  return matrix;
}

template <class T>
sparse::Csr<T> decode(const Buckets& buckets, std::span<const T> bucket_values) {
  return decode(buckets, bucket_values, *make_executor(ExecutorKind::Threads, 1));
}

template sparse::Csr<float> decode(const Buckets&, std::span<const float>);
template sparse::Csr<double> decode(const Buckets&, std::span<const double>);
template sparse::Csr<float> decode(const Buckets&, std::span<const float>, Executor&);
template sparse::Csr<double> decode(const Buckets&, std::span<const double>, Executor&);

}  // namespace tessera::partitioner
