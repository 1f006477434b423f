#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// The non-zeros of one record, in the order of its words and values. Refers to lists of others.
struct RecordRows {
  struct Row {
    std::int32_t row = 0;    // block row inside the cell
    std::int32_t first = 0;  // its first block, counted from the record's first
    std::int32_t count = 0;

    friend bool operator==(const Row&, const Row&) = default;
  };
  std::int64_t x = 0, y = 0;  // the cell
  std::int64_t blocks = 0;
  std::vector<Row> rows;  // longest first, ties by row
  // Every row again as one run or as several that follow each other, columns ascending. Positions
  // count in `col`; a column of the cell is the one found there less `first_col`.
  std::span<const Run> runs;
  std::span<const std::int32_t> col;
  std::int32_t first_col = 0;

  std::span<const std::int32_t> columns(const Run& run) const {
    return col.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.count));
  }
};

// The record of a piece that is whole at home: its rows are in order already.
void home_record(const Pieces& pieces, std::int64_t bucket, std::int64_t cell, RecordRows& record);

// The cells of a bucket's records in record order: its own if whole, then guests as they came.
void record_cells(const Holdings& holdings, std::int64_t bucket, std::vector<std::int32_t>& cells);

// Brings together what a bucket holds of a cell. One object may gather many records; it allocates
// only until its lists have grown to the largest of them. A record is good until the next one.
class Gatherer {
 public:
  void gather(const Holdings& holdings, std::int64_t bucket, std::int32_t cell, RecordRows& record);
  // The rows of these runs, which are put in order of their positions; the caller names cell and
  // columns.
  void gather_runs(std::vector<Run>& runs, RecordRows& record);

 private:
  struct RowRuns {
    std::int32_t row, count, first_run, last_run;
  };
  void collect(const Holdings& holdings, std::int64_t bucket, std::int32_t cell);
  std::span<const Run> join_rows(std::vector<Run>& runs);
  std::vector<Run> runs_, ordered_;
  std::vector<RowRuns> rows_;
};

// Collects the travel bounds of records, one after the other.
class TravelBounds {
 public:
  explicit TravelBounds(const TileGrid& grid) : splits_(grid.splits) {}
  void add(std::int64_t bucket, std::int64_t cell);
  const Travel& travel() const { return travel_; }

 private:
  Dims splits_;
  Travel travel_;
};

Travel travel_of(const Holdings& holdings);

}  // namespace tessera::partitioner::internal
