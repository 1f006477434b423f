#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/io/internal/mtx_entries.hpp"
#include "tessera/io/internal/sort_rows.hpp"

namespace tessera::io::internal {

// RowCounts say whether the entries seen so far are row by row, with ascending columns, and where
// each row begins.
class RowCounts {
 public:
  explicit RowCounts(std::int64_t rows) : row_begin_(static_cast<std::size_t>(rows) + 1) {}

  void add(const MtxBatch& batch);
  bool is_in_order() const { return is_in_order_; }

  // Returns the number of entries before each row, [rows + 1].
  std::vector<std::int64_t> take_row_begin() &&;

 private:
  std::vector<std::int64_t> row_begin_;  // the number of entries of row r at r + 1
  std::int32_t last_row_ = -1, last_col_ = -1;
  bool is_in_order_ = true;
};

// Puts entries of a range of rows at the places that their rows have, in the order in which they
// are given.
class RowFiller {
 public:
  // `row_begin` is that of the whole matrix and must outlive the object.
  RowFiller(std::span<const std::int64_t> row_begin, Range rows, const MtxEntries& entries);

  // Calls put(place in the range, index in the batch) for each entry of the rows. Throws
  // Error{BadInput} if a row gets more entries than were counted.
  template <class Put>
  void add(const MtxBatch& batch, Put put) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (batch.row[i] < rows_.begin || batch.row[i] >= rows_.end) continue;
      const auto row = static_cast<std::size_t>(batch.row[i]);
      std::int64_t& next = next_[row - static_cast<std::size_t>(rows_.begin)];
      if (next == row_begin_[row + 1]) refuse_change();
      put(static_cast<std::size_t>(next++ - first_), i);
    }
  }

  // Throws Error{BadInput} if a row has got fewer entries than were counted.
  void check_full() const;

 private:
  [[noreturn]] void refuse_change() const;

  std::span<const std::int64_t> row_begin_;
  Range rows_;
  std::int64_t first_;
  std::vector<std::int64_t> next_;  // by row of the range
  const MtxEntries& entries_;
};

// Throws the error for a place that is given twice, with the lines of both entries, which are
// looked for in the file.
[[noreturn]] void refuse_twins(MtxEntries& entries, const Twins& twins);

}  // namespace tessera::io::internal
