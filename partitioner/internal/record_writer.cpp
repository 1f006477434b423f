#include "tessera/partitioner/internal/record_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "tessera/base/error.hpp"

namespace tessera::partitioner::internal {
namespace {

using codelets::kWords;
using Row = RecordRows::Row;

// Words of 32 bits are read back as signed numbers.
template <class Word>
constexpr std::int64_t kLargestWord = sizeof(Word) == 2 ? std::numeric_limits<std::uint16_t>::max()
                                                        : std::numeric_limits<std::int32_t>::max();

// Words from the first OutputEntry to that of `row`.
std::int64_t words_before(const std::vector<Row>& rows, std::size_t row, std::int64_t per_block) {
  return kWords<codelets::OutputEntry> * static_cast<std::int64_t>(row) +
         per_block * rows[row].first;
}

// The row that block `i` of the record belongs to.
std::size_t row_of_block(const std::vector<Row>& rows, std::int64_t i) {
  const auto after = std::upper_bound(rows.begin(), rows.end(), i,
                                      [](std::int64_t v, const Row& row) { return v < row.first; });
  return static_cast<std::size_t>(after - rows.begin()) - 1;
}

}  // namespace

template <class Word>
std::int32_t RecordWriter<Word>::field(std::int64_t value, const char* name) const {
  if (value <= kLargestWord<Word>) return static_cast<std::int32_t>(value);
  throw Error(
      ErrorCode::LimitExceeded,
      fmt::format("cell (x {}, y {}): {} is {}, but a {}-bit word holds at most {}; cut the "
                  "matrix into more partitions",
                  record_->x, record_->y, name, value, 8 * sizeof(Word), kLargestWord<Word>));
}

template <class Word>
template <class Part>
void RecordWriter<Word>::put(const Part& part, std::vector<Word>& words) const {
  codelets::store(part, [&words](std::int32_t w) { words.push_back(static_cast<Word>(w)); });
}

template <class Word>
void RecordWriter<Word>::write_forward(const RecordRows& record, std::vector<Word>& words) {
  record_ = &record;
  if (grid_.grad_w)
    codelets::split_between_workers(1, record.blocks(), grid_.workers, {}, grad_w_shares_);
  if (grid_.block.is_element())
    write_element(record, words);
  else
    write_block(record, words);
}

// Rows and z between the workers; by weight where there are rows to choose from.
template <class Word>
void RecordWriter<Word>::split_rows(const std::vector<Row>& rows) {
  weights_.clear();
  if (rows.size() > 1)
    for (const Row& row : rows) weights_.push_back(row.count);
  codelets::split_between_workers(static_cast<std::int64_t>(rows.size()),
                                  grid_.z_per_tile() / grid_.z_grain, grid_.workers, weights_,
                                  shares_);
}

template <class Word>
void RecordWriter<Word>::put_element_header(const RecordRows& record, const Sizes& sizes,
                                            std::vector<Word>& words) {
  codelets::ElementHeader header{};
  header.sub_group =
      field(codelets::sub_group_id(record_->x, record_->y, grid_.splits.y), "the sub-group id");
  header.x_partition = field(record.x, "the x partition");
  header.y_partition = field(record.y, "the y partition");
  header.non_zeros = field(sizes.values, "the number of values of a record");
  header.next_record = field(sizes.length, "the words of a record");
  header.z = field(grid_.z_per_tile(), "the batch columns of a tile");
  header.last_row = field(static_cast<std::int64_t>(record.rows.size()) - 1, "the last row");
  header.first_output = field(sizes.first_output, "the offset of the first row");
  header.workers = field(static_cast<std::int64_t>(shares_.size()), "the number of workers");
  put(header, words);
}

// `words_per_block` is 1 in a forward record; 2 in a GradA record, whose workers find their values
// through the row entries.
template <class Word>
void RecordWriter<Word>::put_workers(const std::vector<Row>& rows, std::int64_t words_per_block,
                                     std::int64_t first_output, std::vector<Word>& words) {
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
    put(worker, words);
    entry += kWords<codelets::WorkerEntry>;
  }
}

// `table` is the offset of the first entry, `first_output` that of the first row.
template <class Word>
void RecordWriter<Word>::put_grad_w_workers(const RecordRows& record, std::int64_t table,
                                            std::int64_t first_output, std::vector<Word>& words) {
  for (const codelets::WorkShare& share : grad_w_shares_) {
    const std::size_t row = row_of_block(record.rows, share.cols.begin);
    codelets::GradWWorkerEntry worker{};
    worker.first_value =
        field(share.cols.begin * grid_.block.area(), "a GradW worker's first value");
    worker.first_output = field(first_output - table + words_before(record.rows, row, 1),
                                "the offset of a GradW worker's first row");
    worker.skip = field(share.cols.begin - record.rows[row].first, "a GradW worker's skip");
    worker.count = field(share.cols.size(), "a GradW worker's non-zeros");
    put(worker, words);
    table += kWords<codelets::GradWWorkerEntry>;
  }
}

template <class Word>
void RecordWriter<Word>::write_element(const RecordRows& record, std::vector<Word>& words) {
  split_rows(record.rows);
  const std::int64_t table =
      kWords<codelets::ElementHeader> +
      kWords<codelets::WorkerEntry> * static_cast<std::int64_t>(shares_.size());
  const auto grad_w_workers = static_cast<std::int64_t>(grad_w_shares_.size());
  const std::int64_t first_output =
      table + (grid_.grad_w ? 1 + kWords<codelets::GradWWorkerEntry> * grad_w_workers : 0);
  const auto rows = static_cast<std::int64_t>(record.rows.size());
  const std::int64_t length = first_output + kWords<codelets::OutputEntry> * rows + record.blocks();
  put_element_header(record, {record.blocks(), length, first_output}, words);
  put_workers(record.rows, 1, first_output, words);
  if (grid_.grad_w) {
    words.push_back(static_cast<Word>(field(grad_w_workers, "the number of GradW workers")));
    put_grad_w_workers(record, table + 1, first_output, words);
  }
  const std::int64_t scale = codelets::type_factor(grid_.data_type) * grid_.z_per_tile();
  for (const Row& row : record.rows) {
    put(codelets::OutputEntry{field(row.row, "a row"), field(row.count, "the non-zeros of a row")},
        words);
    for (const std::int32_t col : std::span(record.col).subspan(row.first, row.count))
      words.push_back(static_cast<Word>(field(col * scale, "the byte offset of a column")));
  }
}

template <class Word>
void RecordWriter<Word>::write_block(const RecordRows& record, std::vector<Word>& words) {
  const std::int64_t workers = grid_.grad_w ? static_cast<std::int64_t>(grad_w_shares_.size()) : 0;
  const std::int64_t first_output =
      kWords<codelets::BlockHeader> + kWords<codelets::GradWWorkerEntry> * workers;
  const auto rows = static_cast<std::int64_t>(record.rows.size());
  codelets::BlockHeader header{};
  header.sub_group =
      field(codelets::sub_group_id(record.x, record.y, grid_.splits.y), "the sub-group id");
  header.x_partition = field(record.x, "the x partition");
  header.y_partition = field(record.y, "the y partition");
  header.non_zeros =
      field(record.blocks() * grid_.block.area(), "the number of values of a record");
  header.next_record = field(first_output + kWords<codelets::OutputEntry> * rows + record.blocks(),
                             "the words of a record");
  header.last_row = field(rows - 1, "the last row");
  header.grad_w_workers = field(workers, "the number of GradW workers");
  put(header, words);
  if (grid_.grad_w) put_grad_w_workers(record, kWords<codelets::BlockHeader>, first_output, words);
  for (const Row& row : record.rows) {
    put(codelets::OutputEntry{field(row.row * grid_.block.rows, "a row"),
                              field(row.count - 1, "the blocks of a row")},
        words);
    for (const std::int32_t col : std::span(record.col).subspan(row.first, row.count))
      words.push_back(static_cast<Word>(field(col * grid_.block.cols, "a column")));
  }
}

// Rows of the result are columns of the record; its `source` is the value's index in the record.
template <class Word>
void RecordWriter<Word>::transpose(const RecordRows& record) {
  entries_.clear();
  for (const Row& row : record.rows)
    for (std::int32_t i = row.first; i < row.first + row.count; ++i)
      entries_.push_back({record.col[static_cast<std::size_t>(i)], row.row, i});
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.col != b.col ? a.col < b.col : a.row < b.row;
  });
  auto& rows = transposed_.rows;
  rows.clear(), transposed_.col.clear(), transposed_.source.clear();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(entries_.size()); ++i) {
    const std::int32_t col = entries_[static_cast<std::size_t>(i)].col;
    if (rows.empty() || rows.back().row != col) rows.push_back({col, i, 0});
    ++rows.back().count;
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.count != b.count ? a.count > b.count : a.row < b.row;
  });
  for (Row& row : rows) {
    const auto run = std::span(entries_).subspan(row.first, row.count);
    row.first = static_cast<std::int32_t>(transposed_.col.size());
    for (const Entry& entry : run) {
      transposed_.col.push_back(entry.row);
      transposed_.source.push_back(entry.value);
    }
  }
  transposed_.x = record.y;
  transposed_.y = record.x;
}

template <class Word>
void RecordWriter<Word>::write_grad_a(const RecordRows& record, std::vector<Word>& words) {
  record_ = &record;
  transpose(record);
  split_rows(transposed_.rows);
  const std::int64_t first_output =
      kWords<codelets::ElementHeader> +
      kWords<codelets::WorkerEntry> * static_cast<std::int64_t>(shares_.size());
  const auto rows = static_cast<std::int64_t>(transposed_.rows.size());
  const std::int64_t length =
      first_output + kWords<codelets::OutputEntry> * rows + 2 * record.blocks();
  put_element_header(transposed_, {record.blocks(), length, first_output}, words);
  put_workers(transposed_.rows, 2, first_output, words);
  const std::int64_t factor = codelets::type_factor(grid_.data_type);
  const std::int64_t scale = factor * grid_.z_per_tile();
  for (const Row& row : transposed_.rows) {
    put(codelets::OutputEntry{field(row.row, "a GradA row"),
                              field(row.count, "the non-zeros of a GradA row")},
        words);
    for (std::size_t i = static_cast<std::size_t>(row.first), n = 0;
         n < static_cast<std::size_t>(row.count); ++i, ++n) {
      words.push_back(static_cast<Word>(
          field(transposed_.source[i] * factor, "the byte offset of a GradA value")));
      words.push_back(
          static_cast<Word>(field(transposed_.col[i] * scale, "the byte offset of a GradA row")));
    }
  }
}

template class RecordWriter<std::uint16_t>;
template class RecordWriter<std::uint32_t>;

}  // namespace tessera::partitioner::internal
