#include "tessera/partitioner/internal/figures.hpp"

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

// Row of the run of `bucket` that touches the first item of `edge`; below 0, and different for
// different buckets, when there is none.
std::int64_t row_at_edge(const Pieces& pieces, std::int64_t bucket, std::int64_t edge) {
  const std::int64_t item = pieces.item_begin[static_cast<std::size_t>(edge)];
  for (const Run& run : pieces.runs_of(bucket))
    if ((bucket == edge ? run.begin : run.begin + run.count) == item) return run.row;
  return -1 - bucket;
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
  auto rows = static_cast<std::int64_t>(pieces.runs.size());
  const auto buckets = static_cast<std::int64_t>(pieces.item_begin.size()) - 1;
  // A row that is cut between the z shares of its cell ends one of them and begins the next.
  for (std::int64_t b = 1; b < buckets; ++b)
    if (b % z_parts != 0) rows -= row_at_edge(pieces, b - 1, b) == row_at_edge(pieces, b, b);
  return rows;
}

}  // namespace tessera::partitioner::internal
