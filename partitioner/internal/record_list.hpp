#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/bucket_writer.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/pieces.hpp"

namespace tessera::partitioner::internal {

// The records of one bucket taken apart, to be changed and written again. Only the headers of the
// words are read: rows and columns are those of `matrix` at the positions in the source map. Words
// and source map must be what BucketWriter wrote. Not for use by several threads.
class RecordList {
 public:
  RecordList(const TileGrid& grid, const Pattern& matrix);

  // Replaces the list by the records of a bucket. Slots of Moves::kGone are left out. Adds what was
  // there to `before`. Error{InvalidArgument} when a position does not lie in its record's cell.
  template <class Word>
  void take(std::int64_t bucket, const BucketLists<Word>& lists, SpillStats& before);
  // Adds a block to the record of the bucket's own cell, which comes to be where there is none.
  void add_home(std::int64_t bucket, std::int32_t position);
  std::int64_t size() const { return count_; }
  // Record i as it is now, maybe without blocks; good until the next call.
  void gather(std::int64_t i, RecordRows& record);

 private:
  struct Record {
    std::int64_t cell = 0;
    std::vector<Run> runs;
  };
  Record& start_record(std::int64_t cell);
  void add_runs(std::span<const std::int32_t> positions, Record& record) const;
  // The longest run that may begin at a position of a cell: to the end of its row in the matrix.
  Run row_from(std::int64_t cell, std::int32_t position) const;
  void check_inside(const Record& record, const Run& run) const;

  TileGrid grid_;
  Pattern matrix_;
  std::int64_t x_step_, y_step_;
  Gatherer gatherer_;
  std::int64_t count_ = 0;
  std::vector<Record> records_;  // the first count_; others keep their storage
};

// The bounds that the records of all buckets ask for.
template <class Word>
Travel travel_of(const TileGrid& grid, const std::vector<Word>& meta);

}  // namespace tessera::partitioner::internal
