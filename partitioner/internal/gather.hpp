#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// The non-zeros of one record, in the order of its words and values.
struct RecordRows {
  struct Row {
    std::int32_t row = 0;    // block row inside the cell
    std::int32_t first = 0;  // its first block, counted from the record's first
    std::int32_t count = 0;

    friend bool operator==(const Row&, const Row&) = default;
  };
  std::int64_t x = 0, y = 0;         // the cell
  std::vector<Row> rows;             // longest first, ties by row
  std::vector<std::int32_t> col;     // [blocks] block column inside the cell, ascending in a row
  std::vector<std::int32_t> source;  // [blocks] position in the matrix

  std::int64_t blocks() const { return static_cast<std::int64_t>(col.size()); }
};

// The cells of a bucket's records in record order: its own if whole, then guests as they came.
void record_cells(const Holdings& holdings, std::int64_t bucket, std::vector<std::int32_t>& cells);

// Brings together what a bucket holds of a cell. One object may gather many records; it allocates
// only until its lists have grown to the largest of them.
class Gatherer {
 public:
  void gather(const Holdings& holdings, std::int64_t bucket, std::int32_t cell, RecordRows& record);

 private:
  struct RowRuns {
    std::int32_t row, count, first_run, last_run;
  };
  void collect(const Holdings& holdings, std::int64_t bucket, std::int32_t cell);
  std::vector<Run> runs_;
  std::vector<RowRuns> rows_;
};

Travel travel_of(const Holdings& holdings);

}  // namespace tessera::partitioner::internal
