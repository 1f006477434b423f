#include "tessera/partitioner/internal/gather.hpp"

#include <algorithm>

namespace tessera::partitioner::internal {

void record_cells(const Holdings& holdings, std::int64_t bucket, std::vector<std::int32_t>& cells) {
  cells.clear();
  if (holdings.whole_home(bucket) && !holdings.pieces().runs_of(bucket).empty())
    cells.push_back(holdings.cell_of(bucket));
  const auto& guests = holdings.guest_cells(bucket);
  cells.insert(cells.end(), guests.begin(), guests.end());
}

namespace {

// Lists the rows of the record's runs; the runs of a row are consecutive.
void list_rows(RecordRows& record) {
  record.rows.clear();
  std::int32_t first = 0;
  for (const Run& run : record.runs) {
    if (record.rows.empty() || record.rows.back().row != run.row)
      record.rows.push_back({run.row, first, 0});
    record.rows.back().count += run.count;
    first += run.count;
  }
  record.blocks = first;
}

void name_cell(const Pieces& pieces, std::int64_t cell, RecordRows& record) {
  record.x = cell / pieces.y_splits;
  record.y = cell % pieces.y_splits;
  record.col = pieces.pattern.col;
  record.first_col = pieces.first_col(cell);
}

}  // namespace

void home_record(const Pieces& pieces, std::int64_t bucket, std::int64_t cell, RecordRows& record) {
  name_cell(pieces, cell, record);
  record.runs = pieces.runs_of(bucket);
  record.rows.resize(record.runs.size());
  std::int32_t first = 0;
  for (std::size_t r = 0; r < record.runs.size(); ++r) {
    const Run& run = record.runs[r];
    record.rows[r] = {run.row, first, run.count};
    first += run.count;
  }
  record.blocks = first;
}

void Gatherer::collect(const Holdings& holdings, std::int64_t bucket, std::int32_t cell) {
  runs_.clear();
  if (holdings.whole_home(bucket) && holdings.cell_of(bucket) == cell) {
    const auto home = holdings.pieces().runs_of(bucket);
    runs_.assign(home.begin(), home.end());
  }
  for (const Guest& guest : holdings.guests(bucket))
    if (guest.cell == cell) runs_.push_back(guest.run);
}

// Returns the runs ordered by rows, long rows first.
std::span<const Run> Gatherer::join_rows(std::vector<Run>& runs) {
  // After this sort the runs of a row are neighbours, columns ascending.
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  rows_.clear();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(runs.size()); ++i) {
    const Run& run = runs[static_cast<std::size_t>(i)];
    if (rows_.empty() || rows_.back().row != run.row) rows_.push_back({run.row, 0, i, i});
    rows_.back().count += run.count;
    rows_.back().last_run = i;
  }
  std::sort(rows_.begin(), rows_.end(), [](const RowRuns& a, const RowRuns& b) {
    return a.count != b.count ? a.count > b.count : a.row < b.row;
  });
  ordered_.clear();
  for (const RowRuns& row : rows_)
    ordered_.insert(ordered_.end(), runs.begin() + row.first_run, runs.begin() + row.last_run + 1);
  return ordered_;
}

void Gatherer::gather(const Holdings& holdings, std::int64_t bucket, std::int32_t cell,
                      RecordRows& record) {
  // A piece that is alone in its bucket: nearly every record.
  if (holdings.whole_home(bucket) && holdings.cell_of(bucket) == cell &&
      holdings.guests(bucket).empty())
    return home_record(holdings.pieces(), bucket, cell, record);
  name_cell(holdings.pieces(), cell, record);
  collect(holdings, bucket, cell);
  record.runs = join_rows(runs_);
  list_rows(record);
}

void Gatherer::gather_runs(std::vector<Run>& runs, RecordRows& record) {
  record.runs = join_rows(runs);
  list_rows(record);
}

void TravelBounds::add(std::int64_t bucket, std::int64_t cell) {
  const std::int64_t held = bucket / splits_.z;
  const std::int64_t dx = (cell / splits_.y - held / splits_.y + splits_.x) % splits_.x;
  const std::int64_t dy = (cell % splits_.y - held % splits_.y + splits_.y) % splits_.y;
  if (dx >= travel_.x_end()) travel_.y_end.resize(static_cast<std::size_t>(dx) + 1);
  std::int32_t& y_end = travel_.y_end[static_cast<std::size_t>(dx)];
  y_end = std::max(y_end, static_cast<std::int32_t>(dy) + 1);
}

Travel travel_of(const Holdings& holdings) {
  TravelBounds bounds(holdings.grid());
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b)
    for (const std::int32_t cell : holdings.guest_cells(b)) bounds.add(b, cell);
  return bounds.travel();
}

}  // namespace tessera::partitioner::internal
