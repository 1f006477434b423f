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

void Gatherer::collect(const Holdings& holdings, std::int64_t bucket, std::int32_t cell) {
  runs_.clear();
  if (holdings.whole_home(bucket) && holdings.cell_of(bucket) == cell) {
    const auto home = holdings.pieces().runs_of(bucket);
    runs_.assign(home.begin(), home.end());
  }
  for (const Guest& guest : holdings.guests(bucket))
    if (guest.cell == cell) runs_.push_back(guest.run);
  // Items lie by row, then column: so the runs of a row become neighbours, columns ascending.
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.begin < b.begin; });
}

void Gatherer::gather(const Holdings& holdings, std::int64_t bucket, std::int32_t cell,
                      RecordRows& record) {
  collect(holdings, bucket, cell);
  rows_.clear();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(runs_.size()); ++i) {
    const Run& run = runs_[static_cast<std::size_t>(i)];
    if (rows_.empty() || rows_.back().row != run.row) rows_.push_back({run.row, 0, i, i});
    rows_.back().count += run.count;
    rows_.back().last_run = i;
  }
  std::sort(rows_.begin(), rows_.end(), [](const RowRuns& a, const RowRuns& b) {
    return a.count != b.count ? a.count > b.count : a.row < b.row;
  });
  record.x = cell / holdings.grid().splits.y;
  record.y = cell % holdings.grid().splits.y;
  record.rows.clear(), record.col.clear(), record.source.clear();
  const Pieces& pieces = holdings.pieces();
  for (const RowRuns& row : rows_) {
    record.rows.push_back({row.row, static_cast<std::int32_t>(record.col.size()), row.count});
    for (std::int32_t r = row.first_run; r <= row.last_run; ++r) {
      const Run& run = runs_[static_cast<std::size_t>(r)];
      const auto add = [&run](const std::vector<std::int32_t>& from,
                              std::vector<std::int32_t>& to) {
        to.insert(to.end(), from.begin() + run.begin, from.begin() + run.begin + run.count);
      };
      add(pieces.col, record.col);
      add(pieces.block, record.source);
    }
  }
}

Travel travel_of(const Holdings& holdings) {
  const Dims splits = holdings.grid().splits;
  Travel travel;
  std::vector<std::int32_t> cells;
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b) {
    const std::int64_t held_x = b / splits.z / splits.y, held_y = b / splits.z % splits.y;
    record_cells(holdings, b, cells);
    for (const std::int32_t cell : cells) {
      const std::int64_t dx = (cell / splits.y - held_x + splits.x) % splits.x;
      const std::int64_t dy = (cell % splits.y - held_y + splits.y) % splits.y;
      if (dx >= travel.x_end()) travel.y_end.resize(static_cast<std::size_t>(dx) + 1);
      std::int32_t& y_end = travel.y_end[static_cast<std::size_t>(dx)];
      y_end = std::max(y_end, static_cast<std::int32_t>(dy) + 1);
    }
  }
  return travel;
}

}  // namespace tessera::partitioner::internal
