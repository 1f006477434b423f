#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"

// Builds buckets by hand: words are appended one by one in the order of docs/bucket-format.md. It
// shares no code with the encoder or with codelets/bucket_layout.hpp, so that each can be tested
// against the other.
namespace tessera::test {

// Rows first_row .. first_row + rows - 1 of the record's list, and z columns from first_z on.
struct DrawnWorker {
  std::int64_t first_row = 0, rows = 0, first_z = 0, z = 0;
};

// Element rows and columns inside the cell; for blocks, those of the upper left corner.
struct DrawnRow {
  std::int64_t row = 0;
  std::vector<std::int64_t> columns;
};

struct DrawnRecord {
  std::int64_t sub_group = 1, x_partition = 0, y_partition = 0;
  std::vector<DrawnRow> rows;
  std::vector<DrawnWorker> workers;       // empty: one worker does everything
  std::vector<std::int64_t> grad_w_runs;  // non-zeros (blocks) of each; empty: no GradW table

  std::int64_t entries() const {
    std::int64_t sum = 0;
    for (const DrawnRow& row : rows) sum += std::int64_t(row.columns.size());
    return sum;
  }
};

using BucketWords = std::vector<std::uint32_t>;

// Makes a record from rows of text: every character but '.' and ' ' is a non-zero (or the corner of
// a block of `block` elements, one character for each block). Rows without any are left out.
inline DrawnRecord draw(const std::vector<std::string_view>& text, BlockShape block = {},
                        std::int64_t sub_group = 1) {
  DrawnRecord record;
  record.sub_group = sub_group;
  for (std::size_t x = 0; x < text.size(); ++x) {
    DrawnRow row{std::int64_t(x) * block.rows, {}};
    for (std::size_t y = 0; y < text[x].size(); ++y)
      if (text[x][y] != '.' && text[x][y] != ' ')
        row.columns.push_back(std::int64_t(y) * block.cols);
    if (!row.columns.empty()) record.rows.push_back(row);
  }
  return record;
}

// Returns the same non-zeros by columns, which a separate GradA bucket lists.
struct DrawnTranspose {
  struct Pair {
    std::int64_t value = 0, row = 0;
  };
  std::vector<std::int64_t> columns;     // ascending
  std::vector<std::vector<Pair>> pairs;  // of each column, in forward order
};

inline DrawnTranspose transposed(const DrawnRecord& record) {
  DrawnTranspose result;
  std::int64_t last = -1;
  for (const DrawnRow& row : record.rows)
    for (const std::int64_t column : row.columns) last = std::max(last, column);
  for (std::int64_t column = 0; column <= last; ++column) {
    std::vector<DrawnTranspose::Pair> pairs;
    std::int64_t value = 0;
    for (const DrawnRow& row : record.rows)
      for (const std::int64_t at : row.columns) {
        if (at == column) pairs.push_back({value, row.row});
        ++value;
      }
    if (pairs.empty()) continue;
    result.columns.push_back(column);
    result.pairs.push_back(pairs);
  }
  return result;
}

namespace internal {

class WordWriter {
 public:
  explicit WordWriter(BucketWords& words) : words_(words), start_(words.size()) {}

  void put(std::int64_t word) {
    if (word < 0 || word > std::numeric_limits<std::uint32_t>::max())
      throw std::out_of_range("word " + std::to_string(word));
    words_.push_back(static_cast<std::uint32_t>(word));
  }
  // Returns the number of words since the start of the record.
  std::int64_t place() const { return std::int64_t(words_.size() - start_); }

 private:
  BucketWords& words_;
  std::size_t start_;
};

// Returns the words from the first row to row `count`.
inline std::int64_t words_before(const std::vector<std::size_t>& row_words, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::int64_t(row_words[std::size_t(i)]);
  return sum;
}

// Appends the table of GradW workers, with `area` values for each entry; rows begin at
// `first_output`.
inline void put_grad_w(WordWriter& out, const DrawnRecord& record, std::int64_t area,
                       std::int64_t first_output) {
  std::int64_t done = 0;
  for (const std::int64_t run : record.grad_w_runs) {
    std::int64_t skip = done, words = 0;
    for (const DrawnRow& row : record.rows) {
      if (skip < std::int64_t(row.columns.size())) break;
      skip -= std::int64_t(row.columns.size());
      words += 2 + std::int64_t(row.columns.size());
    }
    const std::int64_t here = out.place();
    for (const std::int64_t word : {done * area, first_output + words - here, skip, run})
      out.put(word);
    done += run;
  }
}

struct ElementTable {
  std::int64_t x_partition, y_partition, z;
  std::vector<std::size_t> row_words;      // of each row with its entry
  std::vector<std::int64_t> row_nonzeros;  // empty: the workers' first value is always 0
};

// Appends header and worker table of an element record, up to its rows or its GradW table.
inline void put_element_head(WordWriter& out, const DrawnRecord& record, const ElementTable& table,
                             std::int64_t grad_w_words) {
  std::vector<DrawnWorker> workers = record.workers;
  const auto rows = std::int64_t(table.row_words.size());
  if (workers.empty()) workers = {{0, rows, 0, table.z}};
  const std::int64_t first_output = 9 + 5 * std::int64_t(workers.size()) + grad_w_words;
  const std::int64_t next = first_output + words_before(table.row_words, rows);
  for (const std::int64_t word :
       {record.sub_group, table.x_partition, table.y_partition, record.entries(), next, table.z,
        rows - 1, first_output, std::int64_t(workers.size())})
    out.put(word);
  for (const DrawnWorker& worker : workers) {
    std::int64_t first_value = 0;
    for (std::size_t i = 0; !table.row_nonzeros.empty() && i < std::size_t(worker.first_row); ++i)
      first_value += table.row_nonzeros[i];
    const std::int64_t here = out.place();
    const std::int64_t output = first_output + words_before(table.row_words, worker.first_row);
    for (const std::int64_t word :
         {first_value, worker.z, worker.first_z, worker.rows - 1, output - here})
      out.put(word);
  }
}

}  // namespace internal

// Builds a forward element bucket; `bytes` is 4 for float and 2 for half.
inline BucketWords element_words(const std::vector<DrawnRecord>& records, std::int64_t bytes,
                                 std::int64_t z) {
  BucketWords words;
  for (const DrawnRecord& record : records) {
    internal::WordWriter out(words);
    internal::ElementTable table{record.x_partition, record.y_partition, z, {}, {}};
    for (const DrawnRow& row : record.rows) {
      table.row_words.push_back(2 + row.columns.size());
      table.row_nonzeros.push_back(std::int64_t(row.columns.size()));
    }
    const auto runs = std::int64_t(record.grad_w_runs.size());
    internal::put_element_head(out, record, table, runs == 0 ? 0 : 1 + 4 * runs);
    if (runs > 0) {
      out.put(runs);
      internal::put_grad_w(out, record, 1, out.place() + 4 * runs);
    }
    for (const DrawnRow& row : record.rows) {
      out.put(row.row);
      out.put(std::int64_t(row.columns.size()));
      for (const std::int64_t column : row.columns) out.put(column * bytes * z);
    }
  }
  words.push_back(0);
  return words;
}

// Builds the separate GradA bucket of the same records; `workers` then count rows of the transpose.
inline BucketWords grad_a_words(const std::vector<DrawnRecord>& records, std::int64_t bytes,
                                std::int64_t z) {
  BucketWords words;
  for (const DrawnRecord& record : records) {
    internal::WordWriter out(words);
    const DrawnTranspose turned = transposed(record);
    internal::ElementTable table{record.y_partition, record.x_partition, z, {}, {}};
    for (const auto& pairs : turned.pairs) table.row_words.push_back(2 + 2 * pairs.size());
    internal::put_element_head(out, record, table, 0);
    for (std::size_t i = 0; i < turned.columns.size(); ++i) {
      out.put(turned.columns[i]);
      out.put(std::int64_t(turned.pairs[i].size()));
      for (const auto& pair : turned.pairs[i]) {
        out.put(pair.value * bytes);
        out.put(pair.row * bytes * z);
      }
    }
  }
  words.push_back(0);
  return words;
}

inline BucketWords block_words(const std::vector<DrawnRecord>& records, BlockShape block) {
  BucketWords words;
  for (const DrawnRecord& record : records) {
    internal::WordWriter out(words);
    const auto runs = std::int64_t(record.grad_w_runs.size());
    const auto rows = std::int64_t(record.rows.size());
    const std::int64_t first_output = 7 + 4 * runs;
    for (const std::int64_t word :
         {record.sub_group, record.x_partition, record.y_partition, record.entries() * block.area(),
          first_output + 2 * rows + record.entries(), rows - 1, runs})
      out.put(word);
    internal::put_grad_w(out, record, block.area(), first_output);
    for (const DrawnRow& row : record.rows) {
      out.put(row.row);
      out.put(std::int64_t(row.columns.size()) - 1);
      for (const std::int64_t column : row.columns) out.put(column);
    }
  }
  words.push_back(0);
  return words;
}

// Returns the words in 16 bits. Throws std::out_of_range for a word that does not fit.
inline std::vector<std::uint16_t> narrow(const BucketWords& words) {
  std::vector<std::uint16_t> result;
  for (const std::uint32_t word : words) {
    if (word > 65535) throw std::out_of_range("word " + std::to_string(word));
    result.push_back(static_cast<std::uint16_t>(word));
  }
  return result;
}

}  // namespace tessera::test
