#include "tessera/partitioner/internal/record_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/prefetch.hpp"
#include "tessera/partitioner/internal/whole_chunks.hpp"

namespace tessera::partitioner::internal {
namespace {

using codelets::kWords;
using Row = RecordRows::Row;

// Words of 32 bits are read back as signed numbers.
template <class Word>
constexpr std::int64_t kLargestWord = sizeof(Word) == 2 ? std::numeric_limits<std::uint16_t>::max()
                                                        : std::numeric_limits<std::int32_t>::max();

constexpr std::int64_t kGradAEntryWords = 2;

// Words from the first OutputEntry to that of `row`.
std::int64_t words_before(const std::vector<Row>& rows, std::size_t row, std::int64_t per_block) {
  return kWords<codelets::OutputEntry> * static_cast<std::int64_t>(row) +
         per_block * rows[row].first;
}

// The row that block `i` of the record belongs to: the last one that begins at or before it.
// Without branches, because the answer is different in every record.
std::size_t row_of_block(const std::vector<Row>& rows, std::int64_t i) {
  const Row* at = rows.data();
  for (std::size_t n = rows.size(); n > 1;) {
    const std::size_t half = n / 2;
    at += at[half].first <= i ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(at - rows.data());
}

}  // namespace

std::int64_t column_scale(const TileGrid& grid) {
  return grid.block.is_element() ? codelets::type_factor(grid.data_type) * grid.z_per_tile()
                                 : grid.block.cols;
}

template <class Word>
RecordWriter<Word>::RecordWriter(const TileGrid& grid)
    : grid_(grid),
      z_(grid.z_per_tile()),
      z_grains_(z_ / grid.z_grain),
      columns_of_cell_(grid.y_range(0).size()),
      column_scale_(column_scale(grid)),
      row_shares_(grid.workers),
      block_shares_(grid.workers) {}

template <class Word>
void RecordWriter<Word>::reject(std::int64_t value, const char* name) const {
  throw Error(
      ErrorCode::LimitExceeded,
      fmt::format("cell (x {}, y {}): {} is {}, but a {}-bit word holds at most {}; cut the "
                  "matrix into more partitions",
                  record_->x, record_->y, name, value, 8 * sizeof(Word), kLargestWord<Word>));
}

template <class Word>
inline std::int32_t RecordWriter<Word>::field(std::int64_t value, const char* name) const {
  if (value > kLargestWord<Word>) reject(value, name);
  return static_cast<std::int32_t>(value);
}

template <class Word>
inline void RecordWriter<Word>::put_word(std::int64_t value, const char* name) {
  *to_++ = static_cast<Word>(field(value, name));
}

template <class Word>
template <class Part>
void RecordWriter<Word>::put(const Part& part) {
  codelets::store(part, [this](std::int32_t w) { *to_++ = static_cast<Word>(w); });
}

template <class Word>
std::int64_t RecordWriter<Word>::forward_room(const RecordRows& record) const {
  const codelets::RecordShape shape{grid_.block.is_element(), grid_.grad_w, grid_.workers};
  return codelets::record_words(shape, std::ssize(record.rows), record.blocks);
}

template <class Word>
Word* RecordWriter<Word>::write_frame(const RecordRows& record, Word* to) {
  record_ = &record;
  to_ = to;
  if (grid_.grad_w) grad_w_shares_ = block_shares_.of(1, record.blocks);
  if (grid_.block.is_element())
    put_element_frame(record);
  else
    put_block_frame(record);
  return to_;
}

template <class Word>
Word* RecordWriter<Word>::write_forward(const RecordRows& record, Word* to) {
  write_frame(record, to);
  put_rows(record);
  return to_;
}

// Splits rows and z between the workers. The number of non-zeros of a row counts if there are rows
// enough; see codelets::split_between_workers.
template <class Word>
void RecordWriter<Word>::split_rows(const std::vector<Row>& rows) {
  const std::int64_t count = std::ssize(rows);
  if (!codelets::splits_by_weight(count, grid_.workers)) {
    shares_ = row_shares_.of(count, z_grains_);
    return;
  }
  const auto blocks_before = [&rows](std::int64_t row) {
    const Row& last = rows[static_cast<std::size_t>(row - 1)];
    return std::int64_t{last.first} + last.count;
  };
  codelets::split_by_sums(count, z_grains_, grid_.workers, blocks_before, weighted_shares_);
  shares_ = weighted_shares_;
}

template <class Word>
void RecordWriter<Word>::put_element_header(const RecordRows& record, const Sizes& sizes) {
  codelets::ElementHeader header{};
  header.sub_group =
      field(codelets::sub_group_id(record_->x, record_->y, grid_.splits.y), "the sub-group id");
  header.x_partition = field(record.x, "the x partition");
  header.y_partition = field(record.y, "the y partition");
  header.non_zeros = field(sizes.values, "the number of values of a record");
  header.next_record = field(sizes.length, "the words of a record");
  header.z = field(z_, "the batch columns of a tile");
  header.last_row = field(static_cast<std::int64_t>(record.rows.size()) - 1, "the last row");
  header.first_output = field(sizes.first_output, "the offset of the first row");
  header.workers = field(static_cast<std::int64_t>(shares_.size()), "the number of workers");
  put(header);
}

// `words_per_block` is 1 in a forward record, and 2 in a GradA record, whose workers find their
// values through the row entries.
template <class Word>
void RecordWriter<Word>::put_workers(const std::vector<Row>& rows, std::int64_t words_per_block,
                                     std::int64_t first_output) {
  std::int64_t entry = kWords<codelets::ElementHeader>;
  for (const codelets::WorkShare& share : shares_) {
    const auto first_row = static_cast<std::size_t>(share.rows.begin);
    codelets::WorkerEntry worker{};
    worker.first_value =
        field(words_per_block == 1 ? rows[first_row].first : 0, "a worker's first value");
    worker.z = field(share.cols.size() * grid_.z_grain, "a worker's batch columns");
    worker.first_z = field(share.cols.begin * grid_.z_grain, "a worker's first batch column");
    worker.last_row = field(share.rows.size() - 1, "a worker's last row");
    worker.first_output =
        field(first_output - entry + words_before(rows, first_row, words_per_block),
              "the offset of a worker's first row");
    put(worker);
    entry += kWords<codelets::WorkerEntry>;
  }
}

// `table` is the offset of the first entry, `first_output` that of the first row.
template <class Word>
void RecordWriter<Word>::put_grad_w_workers(const RecordRows& record, std::int64_t table,
                                            std::int64_t first_output) {
  for (const codelets::WorkShare& share : grad_w_shares_) {
    const std::size_t row = row_of_block(record.rows, share.cols.begin);
    codelets::GradWWorkerEntry worker{};
    worker.first_value =
        field(share.cols.begin * grid_.block.area(), "a GradW worker's first value");
    worker.first_output = field(first_output - table + words_before(record.rows, row, 1),
                                "the offset of a GradW worker's first row");
    worker.skip = field(share.cols.begin - record.rows[row].first, "a GradW worker's skip");
    worker.count = field(share.cols.size(), "a GradW worker's non-zeros");
    put(worker);
    table += kWords<codelets::GradWWorkerEntry>;
  }
}

template <class Word>
void RecordWriter<Word>::put_element_frame(const RecordRows& record) {
  split_rows(record.rows);
  const std::int64_t table =
      kWords<codelets::ElementHeader> + kWords<codelets::WorkerEntry> * std::ssize(shares_);
  const std::int64_t grad_w_workers = std::ssize(grad_w_shares_);
  const std::int64_t first_output =
      table + (grid_.grad_w ? 1 + kWords<codelets::GradWWorkerEntry> * grad_w_workers : 0);
  const std::int64_t length =
      first_output + kWords<codelets::OutputEntry> * std::ssize(record.rows) + record.blocks;
  put_element_header(record, {record.blocks, length, first_output});
  put_workers(record.rows, 1, first_output);
  if (!grid_.grad_w) return;
  put_word(grad_w_workers, "the number of GradW workers");
  put_grad_w_workers(record, table + 1, first_output);
}

template <class Word>
void RecordWriter<Word>::put_block_frame(const RecordRows& record) {
  const std::int64_t workers = grid_.grad_w ? std::ssize(grad_w_shares_) : 0;
  const std::int64_t first_output =
      kWords<codelets::BlockHeader> + kWords<codelets::GradWWorkerEntry> * workers;
  const std::int64_t rows = std::ssize(record.rows);
  codelets::BlockHeader header{};
  header.sub_group =
      field(codelets::sub_group_id(record.x, record.y, grid_.splits.y), "the sub-group id");
  header.x_partition = field(record.x, "the x partition");
  header.y_partition = field(record.y, "the y partition");
  header.non_zeros = field(record.blocks * grid_.block.area(), "the number of values of a record");
  header.next_record = field(first_output + kWords<codelets::OutputEntry> * rows + record.blocks,
                             "the words of a record");
  header.last_row = field(rows - 1, "the last row");
  header.grad_w_workers = field(workers, "the number of GradW workers");
  put(header);
  if (grid_.grad_w) put_grad_w_workers(record, kWords<codelets::BlockHeader>, first_output);
}

template <class Word>
void RecordWriter<Word>::put_rows(const RecordRows& record) {
  const bool element = grid_.block.is_element();
  // Long rows are written first, so the next row may be anywhere in the matrix, and the hardware
  // prefetcher cannot predict it.
  constexpr std::ptrdiff_t kAhead = 2;
  const Run* run = record.runs.data();
  const Run* const end = run + record.runs.size();
  end_ = to_ + kWords<codelets::OutputEntry> * std::ssize(record.rows) + record.blocks;
  for (const Row& row : record.rows) {
    put_word(row.row * grid_.block.rows, "a row");
    put_word(element ? row.count : row.count - 1,
             element ? "the non-zeros of a row" : "the blocks of a row");
    for (std::int32_t left = row.count; left > 0; left -= run++->count) {
      if (end - run > kAhead) prefetch_block(record.columns(run[kAhead]).data(), run[kAhead].count);
      put_columns(record, *run, column_scale_);
    }
  }
}

// Columns ascend, so if the last one fits the width, all do.
template <class Word>
void RecordWriter<Word>::put_columns(const RecordRows& record, const Run& run, std::int64_t scale) {
  const auto columns = record.columns(run);
  const std::int32_t first_col = record.first_col;
  if ((std::int64_t{columns.back()} - first_col) * scale > kLargestWord<Word>)
    for (const std::int32_t col : columns)
      field((col - first_col) * scale,
            grid_.block.is_element() ? "the byte offset of a column" : "a column");
  // The products fit the word, so they are computed at its width: with 16 bits a vector holds twice
  // as many.
  const auto factor = static_cast<Word>(scale);
  const std::int32_t* from = columns.data();
  Word* const to = to_;  // a local name: see put_grad_a_rows()
  in_chunks(run.count, std::min(end_ - to, record.col.data() + record.col.size() - from),
            [=](std::int32_t i) {
              to[i] =
                  static_cast<Word>(std::uint32_t{static_cast<Word>(from[i] - first_col)} * factor);
            });
  to_ += run.count;
}

// Lists the record's rows by their number in `by_row_`. Every row of a piece at home is one run,
// and the rows of a piece are neighbours, so a table of the rows between the first and the last is
// cheaper than a sort.
template <class Word>
void RecordWriter<Word>::list_rows(const RecordRows& record) {
  std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = 0;
  for (const Row& row : record.rows) {
    least = std::min(least, row.row);
    most = std::max(most, row.row);
  }
  last_row_ = most;
  at_row_.assign(static_cast<std::size_t>(most - least) + 1, {});
  std::int32_t first = 0;
  for (std::size_t r = 0; r < record.runs.size(); ++r) {
    const Run& run = record.runs[r];
    RowRuns& row = at_row_[static_cast<std::size_t>(run.row - least)];
    if (row.runs == 0) row = {static_cast<std::int32_t>(r), 0, first};
    ++row.runs;
    first += run.count;
  }
  by_row_.resize(record.rows.size() + 1);
  RowRuns* to = by_row_.data();
  for (const RowRuns& row : at_row_) {
    *to = row;
    to += row.runs > 0;
  }
  by_row_.pop_back();
}

// Lists column and entry of every non-zero in order of rows. Runs are short, so whole vectors are
// written for each, of which the next run overwrites the surplus; the loops that follow have no run
// borders, which a processor would mispredict.
template <class Word>
void RecordWriter<Word>::list_entries(const RecordRows& record) {
  const auto factor = static_cast<Word>(codelets::type_factor(grid_.data_type));
  const auto scale = static_cast<Word>(factor * z_);
  const auto size = static_cast<std::size_t>(record.blocks + kChunk);
  if (entries_.size() < size) {
    entries_.resize(size);
    columns_.resize(size);
  }
  std::int32_t* column = columns_.data();
  Entry* entry = entries_.data();
  const std::int32_t first_col = record.first_col;  // a local name: see put_grad_a_rows()
  for (const RowRuns& row : by_row_) {
    std::int32_t first = row.first_value;
    for (std::int32_t r = row.first_run; r < row.first_run + row.runs; ++r) {
      const Run& run = record.runs[static_cast<std::size_t>(r)];
      const std::int32_t* const from = record.columns(run).data();
      const auto words = static_cast<Word>(std::uint32_t{static_cast<Word>(run.row)} * scale);
      in_chunks(run.count, record.col.data() + record.col.size() - from, [&](std::int32_t i) {
        column[i] = from[i] - first_col;
        entry[i] = {static_cast<Word>(std::uint32_t{static_cast<Word>(first + i)} * factor), words};
      });
      column += run.count;
      entry += run.count;
      first += run.count;
    }
  }
}

// Counts the non-zeros of every column, and lists the columns that have some as rows of the
// transposed record, those with the most first and equal ones in ascending order. O(columns of a
// cell + non-zeros).
template <class Word>
void RecordWriter<Word>::list_columns(const RecordRows& record) {
  col_count_.assign(static_cast<std::size_t>(columns_of_cell_), 0);
  std::int32_t* const counts = col_count_.data();
  const std::int32_t* const columns = columns_.data();
  for (std::int64_t i = 0; i < record.blocks; ++i) ++counts[columns[i]];
  found_.resize(col_count_.size() + 1);
  std::size_t found = 0;
  std::int32_t most = 0;
  for (std::size_t col = 0; col < col_count_.size(); ++col) {
    found_[found] = static_cast<std::int32_t>(col);
    found += counts[col] > 0;
    most = std::max(most, counts[col]);
  }
  found_.resize(found);
  transposed_.rows.resize(found);
  longest_first_.place(
      found, most, [&](std::size_t i) { return counts[found_[i]]; },
      [&](std::size_t i, std::size_t to) {
        transposed_.rows[to] = {found_[i], 0, counts[found_[i]]};
      });
  std::int32_t first = 0;
  for (Row& row : transposed_.rows) {
    row.first = first;
    first += row.count;
  }
}

template <class Word>
std::int64_t RecordWriter<Word>::prepare_grad_a(const RecordRows& record) {
  record_ = &record;
  transposed_.x = record.y;
  transposed_.y = record.x;
  transposed_.blocks = record.blocks;
  list_rows(record);
  list_entries(record);
  list_columns(record);
  split_rows(transposed_.rows);
  return grad_a_first_output() + kWords<codelets::OutputEntry> * std::ssize(transposed_.rows) +
         kGradAEntryWords * record.blocks;
}

template <class Word>
std::int64_t RecordWriter<Word>::grad_a_first_output() const {
  return kWords<codelets::ElementHeader> + kWords<codelets::WorkerEntry> * std::ssize(shares_);
}

template <class Word>
Word* RecordWriter<Word>::write_grad_a(Word* to) {
  to_ = to;
  const std::int64_t first_output = grad_a_first_output();
  const std::int64_t length = first_output +
                              kWords<codelets::OutputEntry> * std::ssize(transposed_.rows) +
                              kGradAEntryWords * transposed_.blocks;
  put_element_header(transposed_, {transposed_.blocks, length, first_output});
  put_workers(transposed_.rows, kGradAEntryWords, first_output);
  check_grad_a_words();
  put_grad_a_rows();
  return to + length;
}

// Checks the largest value, row and column of the record instead of every word.
template <class Word>
void RecordWriter<Word>::check_grad_a_words() const {
  const std::int64_t factor = codelets::type_factor(grid_.data_type);
  field((transposed_.blocks - 1) * factor, "the byte offset of a GradA value");
  field(last_row_ * factor * z_, "the byte offset of a GradA row");
  field(found_.back(), "a GradA row");
  field(transposed_.rows.front().count, "the non-zeros of a GradA row");
}

// Within a column, non-zeros are in ascending order of their rows.
template <class Word>
void RecordWriter<Word>::put_grad_a_rows() {
  static_assert(kWords<codelets::OutputEntry> == kGradAEntryWords);
  Word* const to = to_;
  const auto put = [to](std::int32_t place, const Entry& entry) {
    std::memcpy(to + kGradAEntryWords * place, &entry, sizeof entry);
  };
  std::int32_t place = 0;
  for (const Row& row : transposed_.rows) {
    put(place, {static_cast<Word>(row.row), static_cast<Word>(row.count)});
    col_count_[static_cast<std::size_t>(row.row)] = place + 1;
    place += 1 + row.count;
  }
  // Local names, because the compiler must assume that the stores change members.
  const std::int32_t* const columns = columns_.data();
  const Entry* const entries = entries_.data();
  std::int32_t* const next = col_count_.data();
  const std::int64_t blocks = transposed_.blocks;
  for (std::int64_t i = 0; i < blocks; ++i) put(next[columns[i]]++, entries[i]);
}

template class RecordWriter<std::uint16_t>;
template class RecordWriter<std::uint32_t>;

}  // namespace tessera::partitioner::internal
