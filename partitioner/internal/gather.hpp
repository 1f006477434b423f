#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// RecordRows describes the non-zeros of one record, in the order of its words and values. It refers
// to lists that others own.
struct RecordRows {
  struct Row {
    std::int32_t row = 0;    // block row inside the cell
    std::int32_t first = 0;  // position of its first block in the record
    std::int32_t count = 0;

    friend bool operator==(const Row&, const Row&) = default;
  };
  std::int64_t x = 0, y = 0;  // the cell
  std::int64_t blocks = 0;
  std::vector<Row> rows;  // longest first, then by row number

  // The same rows as runs: each row is one run or several consecutive runs, columns ascending. Runs
  // hold positions in `col`; a column inside the cell is col[position] - first_col.
  std::span<const Run> runs;
  std::span<const std::int32_t> col;
  std::int32_t first_col = 0;

  std::span<const std::int32_t> columns(const Run& run) const {
    return col.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.count));
  }
};

// Sets `record` to the record of a piece that is whole at home, whose rows are in order already.
void home_record(const Pieces& pieces, std::int64_t bucket, std::int64_t cell, RecordRows& record);

// Lists the cells of a bucket's records in record order: its own cell if the piece is whole at
// home, then the guests' cells in order of arrival.
void record_cells(const Holdings& holdings, std::int64_t bucket, std::vector<std::int32_t>& cells);

// Gatherer collects everything that a bucket holds of a cell. One object may gather many records;
// it allocates only until its lists have grown to the largest of them. A record is valid until the
// next call.
class Gatherer {
 public:
  void gather(const Holdings& holdings, std::int64_t bucket, std::int32_t cell, RecordRows& record);

  // Gathers the rows of these runs, and sorts `runs` by position. The caller sets cell and columns
  // of the record.
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

// TravelBounds collects the travel bounds of records, one after the other.
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
