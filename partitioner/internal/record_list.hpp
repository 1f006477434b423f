#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/bucket_writer.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/pieces.hpp"

namespace tessera::partitioner::internal {

// RecordList holds the records of one bucket in a form that can be changed and written again. Of
// the words only the headers are read: rows and columns are those of `matrix` at the positions in
// the source map. Words and source map must be those that BucketWriter wrote. An object must not be
// used by several threads.
class RecordList {
 public:
  RecordList(const TileGrid& grid, const Pattern& matrix);

  // Replaces the list by the records of a bucket. Slots with Moves::kGone are left out. Adds the
  // counts of the old records to `before`. Throws Error{InvalidArgument} if a position is outside
  // its record's cell.
  template <class Word>
  void take(std::int64_t bucket, const BucketLists<Word>& lists, SpillStats& before);

  // Adds a block to the record of the bucket's own cell, and creates that record if there is none.
  void add_home(std::int64_t bucket, std::int32_t position);
  std::int64_t size() const { return count_; }

  // Returns record i in its current state, which may have no blocks. It is valid until the next
  // call.
  void gather(std::int64_t i, RecordRows& record);

 private:
  struct Record {
    std::int64_t cell = 0;
    std::vector<Run> runs;
  };
  Record& start_record(std::int64_t cell);
  void add_runs(std::span<const std::int32_t> positions, Record& record) const;

  // The longest run that can begin at a position of a cell: it ends with the row of the matrix.
  Run row_from(std::int64_t cell, std::int32_t position) const;
  void check_inside(const Record& record, const Run& run) const;

  TileGrid grid_;
  Pattern matrix_;
  std::int64_t x_step_, y_step_;
  Gatherer gatherer_;
  std::int64_t count_ = 0;
  std::vector<Record> records_;  // the first count_ are in use, the others keep their storage
};

// Returns the travel bounds that the records of all buckets need.
template <class Word>
Travel travel_of(const TileGrid& grid, const std::vector<Word>& meta);

}  // namespace tessera::partitioner::internal
