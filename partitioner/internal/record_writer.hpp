#pragma once

#include <cstdint>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// Turns records into words, as told in codelets/bucket_layout.hpp. Word is std::uint16_t or
// std::uint32_t. Every field is checked: Error{LimitExceeded} names field, value, limit and cell.
// One object may write many records, and allocates only until its lists have grown. Not for use by
// several threads.
template <class Word>
class RecordWriter {
 public:
  explicit RecordWriter(const TileGrid& grid) : grid_(grid) {}

  // Appends the record of a forward bucket.
  void write_forward(const RecordRows& record, std::vector<Word>& words);
  // Appends the record of a separate GradA bucket.
  void write_grad_a(const RecordRows& record, std::vector<Word>& words);

 private:
  struct Sizes {
    std::int64_t values, length, first_output;
  };

  std::int32_t field(std::int64_t value, const char* name) const;
  template <class Part>
  void put(const Part& part, std::vector<Word>& words) const;
  void write_element(const RecordRows& record, std::vector<Word>& words);
  void write_block(const RecordRows& record, std::vector<Word>& words);
  void split_rows(const std::vector<RecordRows::Row>& rows);
  void put_element_header(const RecordRows& record, const Sizes& sizes, std::vector<Word>& words);
  void put_workers(const std::vector<RecordRows::Row>& rows, std::int64_t words_per_block,
                   std::int64_t first_output, std::vector<Word>& words);
  void put_grad_w_workers(const RecordRows& record, std::int64_t table, std::int64_t first_output,
                          std::vector<Word>& words);
  void transpose(const RecordRows& record);

  TileGrid grid_;
  const RecordRows* record_ = nullptr;
  std::vector<std::int64_t> weights_;
  std::vector<codelets::WorkShare> shares_, grad_w_shares_;
  struct Entry {
    std::int32_t col, row, value;
  };
  std::vector<Entry> entries_;
  RecordRows transposed_;
};

}  // namespace tessera::partitioner::internal
