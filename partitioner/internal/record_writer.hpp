#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/partitioner/internal/even_shares.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/longest_first.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// The scale of column words: a word holds column * scale.
std::int64_t column_scale(const TileGrid& grid);

// RecordWriter turns records into the words that codelets/bucket_layout.hpp describes. Word is
// std::uint16_t or std::uint32_t. Every field is checked: Error{LimitExceeded} names field, value,
// limit and cell. One object may write many records, and allocates only until its lists have grown.
// It must not be used by several threads.
template <class Word>
class RecordWriter {
 public:
  explicit RecordWriter(const TileGrid& grid);

  // Writes the record of a forward bucket to `to`, which must have space for forward_room() words.
  // Returns the end.
  Word* write_forward(const RecordRows& record, Word* to);

  // Writes only the part before the rows: header and worker tables.
  Word* write_frame(const RecordRows& record, Word* to);

  // Returns the words of the record in a separate GradA bucket, which write_grad_a() writes.
  std::int64_t prepare_grad_a(const RecordRows& record);

  // Writes the record that prepare_grad_a() was called for last, which must still exist. Returns
  // the end.
  Word* write_grad_a(Word* to);
  std::int64_t forward_room(const RecordRows& record) const;

 private:
  struct Sizes {
    std::int64_t values, length, first_output;
  };

  std::int32_t field(std::int64_t value, const char* name) const;
  [[noreturn]] void reject(std::int64_t value, const char* name) const;
  void put_word(std::int64_t value, const char* name);
  template <class Part>
  void put(const Part& part);
  void put_element_frame(const RecordRows& record);
  void put_block_frame(const RecordRows& record);
  void put_rows(const RecordRows& record);
  void put_columns(const RecordRows& record, const Run& run, std::int64_t scale);
  void split_rows(const std::vector<RecordRows::Row>& rows);
  void put_element_header(const RecordRows& record, const Sizes& sizes);
  void put_workers(const std::vector<RecordRows::Row>& rows, std::int64_t words_per_block,
                   std::int64_t first_output);
  void put_grad_w_workers(const RecordRows& record, std::int64_t table, std::int64_t first_output);
  void list_rows(const RecordRows& record);
  void list_entries(const RecordRows& record);
  void list_columns(const RecordRows& record);
  std::int64_t grad_a_first_output() const;
  void check_grad_a_words() const;
  void put_grad_a_rows();

  TileGrid grid_;
  // Divisions of the grid, done once: a record of few non-zeros takes as long as ten of them.
  std::int64_t z_, z_grains_, columns_of_cell_, column_scale_;

  const RecordRows* record_ = nullptr;
  Word* to_ = nullptr;
  Word* end_ = nullptr;  // end of the forward record, known once its rows are written
  std::vector<codelets::WorkShare> weighted_shares_;
  EvenShares row_shares_, block_shares_;
  // The shares of the record that is being written.
  std::span<const codelets::WorkShare> shares_, grad_w_shares_;

  // The two words of a non-zero in a GradA record: the offsets of its value in the forward record
  // and of its row.
  struct Entry {
    Word value, row;
  };
  // A row of the forward record: its runs, which are consecutive, and the position of its first
  // value.
  struct RowRuns {
    std::int32_t first_run, runs, first_value;
  };
  std::vector<RowRuns> at_row_, by_row_;
  std::vector<std::int32_t> columns_;    // of the non-zeros, row after row
  std::vector<Entry> entries_;           // likewise
  std::vector<std::int32_t> col_count_;  // [columns of a cell]
  std::vector<std::int32_t> found_;      // columns with non-zeros, in ascending order
  LongestFirst longest_first_;
  std::int64_t last_row_ = 0;  // the largest row of the record
  RecordRows
      transposed_;  // rows, blocks and the cell are set; `first` is a position in column order
};

}  // namespace tessera::partitioner::internal
