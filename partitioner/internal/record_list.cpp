#include "tessera/partitioner/internal/record_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/moves.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner::internal {
namespace {

// The fields with which the headers of both formats begin.
struct RecordHead {
  std::int32_t sub_group, x, y, values, length;
};

template <class Word, class Visit>
void for_each_record(const Word* words, Visit&& visit) {
  while (*words != 0) {
    const auto head = codelets::load<RecordHead>(words);
    visit(head);
    words += head.length;
  }
}

}  // namespace

RecordList::RecordList(const TileGrid& grid, const Pattern& matrix)
    : grid_(grid),
      matrix_(matrix),
      x_step_(ceil_div(grid.size.x / grid.block.rows, grid.splits.x)),
      y_step_(ceil_div(grid.size.y / grid.block.cols, grid.splits.y)) {}

RecordList::Record& RecordList::start_record(std::int64_t cell) {
  if (count_ == std::ssize(records_)) records_.emplace_back();
  Record& record = records_[static_cast<std::size_t>(count_++)];
  record.cell = cell;
  record.runs.clear();
  return record;
}

template <class Word>
void RecordList::take(std::int64_t bucket, const BucketLists<Word>& lists, SpillStats& before) {
  count_ = 0;
  auto slots = std::span<const std::int32_t>(lists.source)
                   .subspan(static_cast<std::size_t>(bucket * grid_.blocks),
                            static_cast<std::size_t>(grid_.blocks));
  for_each_record(lists.meta.data() + bucket * grid_.meta_words, [&](const RecordHead& head) {
    const std::int64_t blocks = head.values / grid_.block.area();
    Record& record = start_record(head.sub_group - 1);
    add_runs(slots.first(static_cast<std::size_t>(blocks)), record);
    slots = slots.subspan(static_cast<std::size_t>(blocks));
    ++before.records;
    if (record.cell != bucket / grid_.splits.z) before.moved_blocks += blocks;
  });
}

void RecordList::add_home(std::int64_t bucket, std::int32_t position) {
  const std::int64_t cell = bucket / grid_.splits.z;
  const auto end = records_.begin() + count_;
  auto home =
      std::find_if(records_.begin(), end, [cell](const Record& r) { return r.cell == cell; });
  if (home == end) {
    start_record(cell);
    std::rotate(records_.begin(), records_.begin() + count_ - 1, records_.begin() + count_);
    home = records_.begin();
  }
  add_runs({&position, 1}, *home);
}

Run RecordList::row_from(std::int64_t cell, std::int32_t position) const {
  const auto first = matrix_.row_begin.begin() + cell / grid_.splits.y * x_step_;
  const auto last =
      first + std::min(x_step_, matrix_.row_begin.end() - 1 - first);  // after the cell's rows
  const auto after = std::upper_bound(first, last, std::int64_t{position});
  const std::int64_t end = after == matrix_.row_begin.end() ? position : *after;
  return {position, static_cast<std::int32_t>(end - position),
          static_cast<std::int32_t>(after - first) - 1};
}

void RecordList::check_inside(const Record& record, const Run& run) const {
  const std::int64_t first_col = record.cell % grid_.splits.y * y_step_;
  const auto col =
      matrix_.col.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.count));
  if (run.row >= 0 && run.row < x_step_ && col.front() >= first_col &&
      sparse::is_legal_row(col, first_col + y_step_))
    return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("update: the block at position {} does not lie in cell (x {}, y {}), "
                          "where it was encoded; give the matrix with the change applied "
                          "(sparse::with_change)",
                          run.begin, record.cell / grid_.splits.y, record.cell % grid_.splits.y));
}

void RecordList::add_runs(std::span<const std::int32_t> positions, Record& record) const {
  for (std::size_t i = 0, end; i < positions.size(); i = end) {
    end = i + 1;
    if (positions[i] == Moves::kGone) continue;
    Run run = row_from(record.cell, positions[i]);
    while (end < positions.size() && end - i < static_cast<std::size_t>(run.count) &&
           positions[end] == positions[end - 1] + 1)
      ++end;
    run.count = static_cast<std::int32_t>(end - i);
    check_inside(record, run);
    record.runs.push_back(run);
  }
}

void RecordList::gather(std::int64_t i, RecordRows& rows) {
  Record& record = records_[static_cast<std::size_t>(i)];
  rows.x = record.cell / grid_.splits.y;
  rows.y = record.cell % grid_.splits.y;
  rows.col = matrix_.col;
  rows.first_col = static_cast<std::int32_t>(rows.y * y_step_);
  gatherer_.gather_runs(record.runs, rows);
}

template <class Word>
Travel travel_of(const TileGrid& grid, const std::vector<Word>& meta) {
  TravelBounds bounds(grid);
  for (std::int64_t b = 0; b < grid.buckets(); ++b)
    for_each_record(meta.data() + b * grid.meta_words,
                    [&](const RecordHead& head) { bounds.add(b, head.sub_group - 1); });
  return bounds.travel();
}

template void RecordList::take(std::int64_t, const BucketLists<std::uint16_t>&, SpillStats&);
template void RecordList::take(std::int64_t, const BucketLists<std::uint32_t>&, SpillStats&);
template Travel travel_of(const TileGrid&, const std::vector<std::uint16_t>&);
template Travel travel_of(const TileGrid&, const std::vector<std::uint32_t>&);

}  // namespace tessera::partitioner::internal
