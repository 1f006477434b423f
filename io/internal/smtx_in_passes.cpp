#include "tessera/io/internal/smtx_in_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/io/internal/mtx_rows.hpp"
#include "tessera/io/internal/number_text.hpp"
#include "tessera/io/internal/sort_rows.hpp"

namespace tessera::io::internal {
namespace {

// Writes numbers with a space between two, in pieces.
class NumberWriter {
 public:
  explicit NumberWriter(const WritePiece& write) : write_(write) {}

  template <class Number>
  void add(Number number) {
    append_number(text_, number, ' ');
    if (std::ssize(text_) >= kPiece) flush_all_but_last();
  }

  // Ends a line of numbers, which may be empty.
  void end_line() {
    if (text_.empty())
      text_ = "\n";
    else
      text_.back() = '\n';
    write_(text_);
    text_.clear();
  }

 private:
  static constexpr std::int64_t kPiece = 1 << 20;

  // The last space may have to become the end of the line.
  void flush_all_but_last() {
    write_(std::string_view(text_).substr(0, text_.size() - 1));
    text_ = text_.back();
  }

  const WritePiece& write_;
  std::string text_;
};

void write_head(const MtxHeader& header, std::span<const std::int64_t> row_begin,
                const WritePiece& write) {
  write(fmt::format("{}, {}, {}\n", header.rows, header.cols, row_begin.back()));
  NumberWriter numbers(write);
  for (const std::int64_t begin : row_begin) numbers.add(begin);
  numbers.end_line();
}

// The first reading of a file: the row pointers and, while the entries are in order and few, the
// columns.
struct FirstPass {
  std::vector<std::int64_t> row_begin;
  std::vector<std::int32_t> col;
  bool is_in_order = true;

  bool has_columns() const { return is_in_order && std::ssize(col) == row_begin.back(); }
};

FirstPass read_once(MtxEntries& entries, std::int64_t most_columns) {
  FirstPass pass;
  RowCounts counts(entries.header().rows);
  bool keeps = true;
  pass.col.reserve(static_cast<std::size_t>(std::min(most_columns, entries.header().entries)));
  entries.read([&](const MtxBatch& batch) {
    counts.add(batch);
    keeps = keeps && counts.is_in_order() &&
            std::ssize(pass.col) + std::ssize(batch.col) <= most_columns;
    if (keeps)
      pass.col.insert(pass.col.end(), batch.col.begin(), batch.col.end());
    else
      std::vector<std::int32_t>().swap(pass.col);
  });
  pass.is_in_order = counts.is_in_order();
  pass.row_begin = std::move(counts).take_row_begin();
  return pass;
}

// Returns ranges of neighbouring rows with at most `most_columns` entries each.
std::vector<Range> cut_rows(const MtxEntries& entries, std::span<const std::int64_t> row_begin,
                            std::int64_t most_columns) {
  std::vector<Range> ranges;
  Range rows;
  const auto entries_of = [&](Range r) {
    return row_begin[static_cast<std::size_t>(r.end)] -
           row_begin[static_cast<std::size_t>(r.begin)];
  };
  for (std::int64_t r = 0; r + 1 < std::ssize(row_begin); ++r) {
    if (const std::int64_t own = entries_of({r, r + 1}); own > most_columns)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: row {} has {} entries; the memory that is allowed holds {} "
                              "columns at a time; allow {:.1f} times as much",
                              entries.name(), r + 1, own, most_columns,
                              double(own) / double(most_columns) + 0.1));
    if (entries_of({rows.begin, r + 1}) > most_columns) {
      ranges.push_back(rows);
      rows.begin = r;
    }
    rows.end = r + 1;
  }
  ranges.push_back(rows);
  return ranges;
}

// The columns of a range of rows, read from a file whose entries are in any order.
class RangeOfRows {
 public:
  RangeOfRows(MtxEntries& entries, std::span<const std::int64_t> row_begin,
              sparse::Duplicates duplicates)
      : entries_(entries), row_begin_(row_begin), duplicates_(duplicates) {}

  // Reads the file, unless the range is that of the last call.
  void load(Range rows) {
    if (rows == rows_) return;
    rows_ = rows;
    const auto begin = row_begin_.subspan(static_cast<std::size_t>(rows.begin),
                                          static_cast<std::size_t>(rows.size()) + 1);
    own_begin_.assign(begin.begin(), begin.end());
    for (std::int64_t& b : own_begin_) b -= begin.front();
    col_.resize(static_cast<std::size_t>(own_begin_.back()));
    RowFiller filler(row_begin_, rows, entries_);
    entries_.read([&](const MtxBatch& batch) {
      filler.add(batch, [&](std::size_t to, std::size_t i) { col_[to] = batch.col[i]; });
    });
    filler.check_full();
    sort_rows(own_begin_, std::span(col_), std::span<double>(), entries_.executor());
    if (duplicates_ == sparse::Duplicates::Sum)
      drop_twins();
    else if (auto twins = find_twins(own_begin_, col_))
      refuse_twins(entries_, {rows.begin + twins->row, twins->col});
  }

  std::span<const std::int64_t> own_begin() const { return own_begin_; }
  std::span<const std::int32_t> col() const { return col_; }

 private:
  void drop_twins() {
    std::int64_t to = 0, from = 0;
    for (std::size_t r = 0; r + 1 < own_begin_.size(); ++r) {
      const std::int64_t first = to;
      for (const std::int64_t end = own_begin_[r + 1]; from < end; ++from) {
        const std::int32_t col = col_[static_cast<std::size_t>(from)];
        if (to == first || col_[static_cast<std::size_t>(to - 1)] != col)
          col_[static_cast<std::size_t>(to++)] = col;
      }
      own_begin_[r + 1] = to;
    }
    col_.resize(static_cast<std::size_t>(to));
  }

  MtxEntries& entries_;
  std::span<const std::int64_t> row_begin_;
  sparse::Duplicates duplicates_;
  Range rows_{-1, -1};
  std::vector<std::int64_t> own_begin_;  // of the rows of the range
  std::vector<std::int32_t> col_;
};

// Returns the row pointers without places that are given twice.
std::vector<std::int64_t> count_places(RangeOfRows& loaded, const std::vector<Range>& ranges) {
  std::vector<std::int64_t> row_begin{0};
  for (const Range& rows : ranges) {
    loaded.load(rows);
    const std::int64_t before = row_begin.back();
    for (const std::int64_t begin : loaded.own_begin().subspan(1))
      row_begin.push_back(before + begin);
  }
  return row_begin;
}

void write_in_order(MtxEntries& entries, const FirstPass& pass, const WritePiece& write) {
  write_head(entries.header(), pass.row_begin, write);
  NumberWriter columns(write);
  if (pass.has_columns()) {
    for (const std::int32_t col : pass.col) columns.add(col);
  } else {
    entries.read([&](const MtxBatch& batch) {
      for (const std::int32_t col : batch.col) columns.add(col);
    });
  }
  columns.end_line();
}

}  // namespace

std::int64_t write_smtx_in_passes(MtxEntries& entries, sparse::Duplicates duplicates,
                                  std::int64_t most_columns, const std::string& path) {
  const FirstPass pass = read_once(entries, most_columns);
  if (pass.is_in_order) {
    write_file_in_pieces(path,
                         [&](const WritePiece& write) { write_in_order(entries, pass, write); });
    return pass.row_begin.back();
  }
  const std::vector<Range> ranges = cut_rows(entries, pass.row_begin, most_columns);
  RangeOfRows loaded(entries, pass.row_begin, duplicates);
  const bool sums = duplicates == sparse::Duplicates::Sum;
  const std::vector<std::int64_t> row_begin = sums ? count_places(loaded, ranges) : pass.row_begin;
  if (ranges.size() == 1) loaded.load(ranges.front());  // a fault is found before a file is begun
  write_file_in_pieces(path, [&](const WritePiece& write) {
    write_head(entries.header(), row_begin, write);
    NumberWriter columns(write);
    for (const Range& rows : ranges) {
      loaded.load(rows);
      for (const std::int32_t col : loaded.col()) columns.add(col);
    }
    columns.end_line();
  });
  return row_begin.back();
}

}  // namespace tessera::io::internal
