#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/record_writer.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// Throws Error{BadInput} with a message like "bucket 3, word 17: ...".
[[noreturn]] void reject_word(std::int64_t bucket, std::int64_t word, const std::string& reason);

// RecordReader reads the records of one bucket after another. It takes the rows from the words; all
// other words of a record (headers, worker tables, GradA records) must be those that RecordWriter
// writes for such rows, so no word of a bucket remains unchecked. Rows may come in any order but
// not twice in a record. Every fault is Error{BadInput} with bucket and word.
template <class Word>
class RecordReader {
 public:
  explicit RecordReader(const TileGrid& grid);

  // Starts a bucket. `grad_a` is the separate GradA bucket, or empty.
  void start(std::int64_t bucket, std::span<const Word> meta, std::span<const Word> grad_a);

  // Reads the next record. Returns false at the end marker, after checking that all later words are
  // 0. The record refers to lists of the reader and is valid until the next call.
  bool read(RecordRows& record);

 private:
  struct Frame {
    std::int64_t length = 0, rows = 0, first_output = 0;
  };
  std::int64_t word(std::int64_t at) const { return meta_[static_cast<std::size_t>(at)]; }
  void expect(bool good, std::int64_t at, const char* reason) const;
  Frame read_frame(RecordRows& record);
  void read_row(const Frame& frame, std::int64_t& at, RecordRows& record);
  bool read_columns(std::span<const Word> words, std::int64_t cols, std::int32_t* to) const;
  [[noreturn]] void reject_columns(std::int64_t first, std::int64_t count, std::int64_t cols) const;
  void compare(std::span<const Word> expected, std::span<const Word> words, std::int64_t at,
               const char* which) const;
  void expect_zeros(std::span<const Word> words, std::int64_t at, const char* which) const;

  TileGrid grid_;
  std::int64_t scale_;
  RecordWriter<Word> writer_;
  std::int64_t bucket_ = 0;
  std::span<const Word> meta_, grad_a_;
  std::int64_t at_ = 0, grad_a_at_ = 0;
  std::vector<Word> expected_;
  std::vector<Run> runs_;
  std::vector<std::int32_t> col_;

  // A row of the cell was already seen in this record if its mark equals mark_.
  std::int64_t mark_ = 0;
  std::vector<std::int64_t> row_mark_;
};

}  // namespace tessera::partitioner::internal
