#include "tessera/partitioner/internal/figures.hpp"

#include <algorithm>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/gather.hpp"

namespace tessera::partitioner::internal {
namespace {

std::int64_t travel_of_guests(const Holdings& holdings, std::int64_t bucket) {
  const Dims splits = holdings.grid().splits;
  const std::int64_t held = holdings.cell_of(bucket);
  std::int64_t travel = 0;
  for (const Guest& guest : holdings.guests(bucket)) {
    const std::int64_t dx = (guest.cell / splits.y - held / splits.y + splits.x) % splits.x;
    const std::int64_t dy = (guest.cell % splits.y - held % splits.y + splits.y) % splits.y;
    travel += guest.run.count * (dx + dy);
  }
  return travel;
}

std::int64_t records_of(const Holdings& holdings, std::int64_t bucket) {
  const bool whole = holdings.whole_home(bucket) && !holdings.pieces().runs_of(bucket).empty();
  return whole + static_cast<std::int64_t>(holdings.guest_cells(bucket).size());
}

// Whether the z shares `before` and `after` of one cell meet inside a row.
bool meet_in_a_row(std::span<const Run> before, std::span<const Run> after) {
  if (before.empty() || after.empty()) return false;
  const auto last = std::ranges::max_element(before, {}, &Run::begin);
  const auto first = std::ranges::min_element(after, {}, &Run::begin);
  return last->row == first->row;
}

}  // namespace

Figures figures_of(const Holdings& holdings) {
  Figures figures;
  figures.steps = travel_of(holdings).steps();
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b) {
    figures.travel += travel_of_guests(holdings, b);
    const Room used = holdings.used(b);
    const std::int64_t row_words =
        used.words - used.blocks - records_of(holdings, b) * holdings.header().words;
    figures.row_parts += row_words / codelets::kWords<codelets::OutputEntry>;
  }
  return figures;
}

std::int64_t count_rows(const Pieces& pieces, std::int64_t z_parts) {
  std::int64_t rows = pieces.run_count();
  const std::int64_t buckets = pieces.buckets_per_part * std::ssize(pieces.parts);
  for (std::int64_t b = 1; b < buckets; ++b)
    if (b % z_parts != 0) rows -= meet_in_a_row(pieces.runs_of(b - 1), pieces.runs_of(b));
  return rows;
}

}  // namespace tessera::partitioner::internal
