#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/balance.hpp"
#include "tessera/partitioner/internal/bucket_writer.hpp"
#include "tessera/partitioner/internal/figures.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/internal/same_shape.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

using internal::Holdings;

// Writes what the holdings say of some neighbouring buckets.
template <class Word>
SpillStats write_range(const Holdings& holdings, Range range,
                       const internal::BucketLists<Word>& lists) {
  internal::BucketWriter<Word> writer(holdings.grid(), lists);
  internal::Gatherer gatherer;
  internal::RecordRows record;
  std::vector<std::int32_t> cells;
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    writer.start(b);
    internal::record_cells(holdings, b, cells);
    for (const std::int32_t cell : cells) {
      gatherer.gather(holdings, b, cell, record);
      const bool fits = writer.add(record);
      TESSERA_ASSERT(fits);
    }
    writer.finish();
  }
  return writer.stats();
}

template <class Word>
void write_buckets(const Holdings& holdings, Executor& executor, Buckets& buckets) {
  const TileGrid& grid = holdings.grid();
  buckets.grid = grid;
  buckets.travel = internal::travel_of(holdings);
  const auto lists = internal::resize_lists<Word>(grid, buckets);
  // A writer has lists that must grow, so it is given many buckets; eight ranges a thread even out.
  const std::int64_t ranges = std::min<std::int64_t>(grid.buckets(), 8 * executor.threads());
  std::vector<SpillStats> stats(static_cast<std::size_t>(ranges));
  executor.for_each(ranges, [&](std::int64_t i) {
    stats[static_cast<std::size_t>(i)] = write_range(
        holdings, {i * grid.buckets() / ranges, (i + 1) * grid.buckets() / ranges}, lists);
  });
  buckets.stats = {};
  for (const SpillStats& s : stats) internal::add_stats(buckets.stats, s);
}

// What balancing knows and the words do not say.
void add_spill_stats(const Holdings& holdings, const internal::Balanced& balanced,
                     SpillStats& stats) {
  const internal::Figures figures = internal::figures_of(holdings);
  stats.steps = figures.steps;
  stats.greedy_steps = balanced.greedy_steps;
  stats.lower_bound_steps = balanced.lower_bound_steps;
  stats.load = balanced.load;
  stats.uneven_load = balanced.uneven_load;
  stats.travel = figures.travel;
  stats.cut_rows = figures.row_parts - holdings.pieces().row_count();
}

std::optional<Misfit> encode_pieces(const internal::Pieces& pieces, const TileGrid& grid,
                                    const EncodeOptions& options, Executor& executor,
                                    Buckets& buckets) {
  Holdings holdings(pieces, grid);
  const internal::Balanced balanced = internal::balance(holdings, options);
  if (!balanced.left.empty())
    return internal::make_misfit(holdings, balanced.left, options.force_spills);
  if (grid.word_bits == 16)
    write_buckets<std::uint16_t>(holdings, executor, buckets);
  else
    write_buckets<std::uint32_t>(holdings, executor, buckets);
  add_spill_stats(holdings, balanced, buckets.stats);
  return std::nullopt;
}

}  // namespace

template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::Csr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options) {
  check(grid);
  internal::check_same_shape(matrix, grid);
  if (options.force_spills && grid.buckets() < 2)
    throw Error(ErrorCode::InvalidArgument,
                "encode: forced spills need at least two buckets, the grid has one");
  sparse::check_all_but_columns(matrix);
  const auto pieces = internal::cut_to_pieces({matrix.row_begin, matrix.col}, grid, executor);
  if (!pieces) {
    sparse::check(matrix);  // throws, and says what is wrong
    TESSERA_ASSERT(pieces.has_value());
  }
  return encode_pieces(*pieces, grid, options, executor, buckets);
}

template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options) {
  const auto alone = make_executor(ExecutorKind::Threads, 1);
  Buckets buckets;
  EncodeResult result;
  result.misfit = encode_into(buckets, matrix, grid, *alone, options);
  if (!result.misfit) result.buckets = std::move(buckets);
  return result;
}

#define TESSERA_ENCODE(T)                                                                      \
  template EncodeResult encode(const sparse::Csr<T>&, const TileGrid&, const EncodeOptions&);  \
  template std::optional<Misfit> encode_into(Buckets&, const sparse::Csr<T>&, const TileGrid&, \
                                             Executor&, const EncodeOptions&);
TESSERA_ENCODE(float)
TESSERA_ENCODE(double)
#undef TESSERA_ENCODE

}  // namespace tessera::partitioner
