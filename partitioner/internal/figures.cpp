#include "tessera/partitioner/internal/figures.hpp"

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/gather.hpp"

namespace tessera::partitioner::internal {
namespace {

std::int64_t travel_of_guests(const Holdings& holdings, std::int64_t bucket) {
  const Dims splits = holdings.grid().splits;
  const std::int64_t held = holdings.cell_of(bucket);
  std::int64_t travel = 0, distance = 0;
  std::int32_t cell = -1;  // of that distance; the guests of a cell are mostly neighbours
  for (const Guest& guest : holdings.guests(bucket)) {
    if (guest.cell != cell) {
      cell = guest.cell;
      const std::int64_t dx = (cell / splits.y - held / splits.y + splits.x) % splits.x;
      const std::int64_t dy = (cell % splits.y - held % splits.y + splits.y) % splits.y;
      distance = dx + dy;
    }
    travel += guest.run.count * distance;
  }
  return travel;
}

std::int64_t record_count(const Holdings& holdings, std::int64_t bucket) {
  const bool whole = holdings.whole_home(bucket) && !holdings.pieces().runs_of(bucket).empty();
  return whole + static_cast<std::int64_t>(holdings.guest_cells(bucket).size());
}

}  // namespace

Figures figures_of(const Holdings& holdings) {
  Figures figures;
  figures.steps = travel_of(holdings).steps();
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b) {
    figures.travel += travel_of_guests(holdings, b);
    const Capacity used = holdings.used(b);
    const std::int64_t row_words =
        used.words - used.blocks - record_count(holdings, b) * holdings.header().words;
    figures.row_parts += row_words / codelets::kWords<codelets::OutputEntry>;
  }
  return figures;
}

}  // namespace tessera::partitioner::internal
