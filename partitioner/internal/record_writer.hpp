#pragma once

#include <cstdint>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/partitioner/internal/gather.hpp"
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
  explicit RecordWriter(const TileGrid& grid) : grid_(grid) {}

  // Writes the record of a forward bucket to `to`, which must have space for forward_room() words.
  // Returns the end.
  Word* write_forward(const RecordRows& record, Word* to);

  // Writes only the part before the rows: header and worker tables.
  Word* write_frame(const RecordRows& record, Word* to);

  // Writes the record of a separate GradA bucket, which has at most grad_a_room() words.
  Word* write_grad_a(const RecordRows& record, Word* to);
  std::int64_t forward_room(const RecordRows& record) const;
  std::int64_t grad_a_room(const RecordRows& record) const;

 private:
  struct Sizes {
    std::int64_t values, length, first_output;
  };

  std::int32_t field(std::int64_t value, const char* name) const;
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
  void list_columns(const RecordRows& record);
  void transpose(const RecordRows& record);
  void put_grad_a_rows();

  TileGrid grid_;
  const RecordRows* record_ = nullptr;
  Word* to_ = nullptr;
  Word* end_ = nullptr;  // end of the forward record, known once its rows are written
  std::vector<std::int64_t> weights_;
  std::vector<codelets::WorkShare> shares_, grad_w_shares_;

  // A non-zero of a GradA record; `value` is its position in the forward record.
  struct Entry {
    std::int32_t row, value;
  };
  // A run of the forward record; `first` is the position of its first value.
  struct RunAt {
    std::int32_t row, run, first;
  };
  std::vector<Entry> entries_;  // column after column
  std::vector<RunAt> by_row_;
  std::vector<std::int32_t> col_count_, next_;  // col_count_: [columns of a cell]
  RecordRows transposed_;  // only rows are set; `first` is a position in entries_
};

}  // namespace tessera::partitioner::internal
