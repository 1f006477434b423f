#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
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
using internal::Pieces;

// The records of a pattern whose pieces are all whole at home.
class HomeRecords {
 public:
  HomeRecords(const Pieces& pieces, const TileGrid& grid) : pieces_(pieces), grid_(grid) {}

  // Returns false if the record does not fit.
  template <class Word>
  bool add(std::int64_t bucket, internal::BucketWriter<Word>& writer) {
    if (pieces_.runs_of(bucket).empty()) return true;
    internal::home_record(pieces_, bucket, bucket / grid_.splits.z, record_);
    return writer.add(record_);
  }

 private:
  const Pieces& pieces_;
  const TileGrid& grid_;
  internal::RecordRows record_;
};

// The records that `holdings` describes.
class HeldRecords {
 public:
  explicit HeldRecords(const Holdings& holdings) : holdings_(holdings) {}

  template <class Word>
  bool add(std::int64_t bucket, internal::BucketWriter<Word>& writer) {
    internal::record_cells(holdings_, bucket, cells_);
    for (const std::int32_t cell : cells_) {
      gatherer_.gather(holdings_, bucket, cell, record_);
      if (!writer.add(record_)) return false;
    }
    return true;
  }

 private:
  const Holdings& holdings_;
  internal::Gatherer gatherer_;
  internal::RecordRows record_;
  std::vector<std::int32_t> cells_;
};

template <class Word, class Records>
SpillStats write_range(const TileGrid& grid, Range range, const internal::BucketLists<Word>& lists,
                       Records records) {
  internal::BucketWriter<Word> writer(grid, lists);
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    writer.start(b);
    const bool fits = records.add(b, writer);
    TESSERA_ASSERT(fits);
    writer.finish();
  }
  return writer.stats();
}

// `records` is copied for every task, because it contains scratch lists.
template <class Word, class Records>
void write_buckets(const TileGrid& grid, Executor& executor, const Records& records,
                   Buckets& buckets) {
  buckets.grid = grid;
  const auto lists = internal::resize_lists<Word>(grid, buckets);
  // The scratch lists of a writer grow with use, so each writer gets many buckets. Eight ranges per
  // thread balance the load.
  const std::int64_t ranges = std::min<std::int64_t>(grid.buckets(), 8 * executor.threads());
  std::vector<SpillStats> stats(static_cast<std::size_t>(ranges));
  executor.for_each(ranges, [&](std::int64_t i) {
    stats[static_cast<std::size_t>(i)] =
        write_range(grid, even_part(grid.buckets(), ranges, i), lists, records);
  });
  buckets.stats = {};
  for (const SpillStats& s : stats) internal::add_stats(buckets.stats, s);
}

template <class Records>
void write_words(const TileGrid& grid, Executor& executor, const Records& records,
                 Buckets& buckets) {
  if (grid.word_bits == 16)
    write_buckets<std::uint16_t>(grid, executor, records, buckets);
  else
    write_buckets<std::uint32_t>(grid, executor, records, buckets);
}

// Sets the statistics that only balancing knows, and that the words do not contain.
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

void encode_at_home(const Pieces& pieces, const TileGrid& grid, Executor& executor,
                    Buckets& buckets) {
  write_words(grid, executor, HomeRecords(pieces, grid), buckets);
  buckets.travel = {};
  buckets.stats.cut_rows = pieces.run_count() - pieces.row_count();
}

std::optional<Misfit> encode_held(const Pieces& pieces, const TileGrid& grid,
                                  const EncodeOptions& options, Executor& executor,
                                  Buckets& buckets) {
  Holdings holdings(pieces, grid);
  const internal::Balanced balanced = internal::balance(holdings, options);
  if (!balanced.left.empty())
    return internal::make_misfit(holdings, balanced.left, options.force_spills);
  write_words(grid, executor, HeldRecords(holdings), buckets);
  buckets.travel = internal::travel_of(holdings);
  add_spill_stats(holdings, balanced, buckets.stats);
  return std::nullopt;
}

// Not if the load is to be evened.
bool is_known_to_stay_home(const Pieces& pieces, const TileGrid& grid,
                           const EncodeOptions& options) {
  return !options.force_spills && !options.even_load && internal::fits_at_home(pieces, grid);
}

template <class T>
void check_request(const sparse::Csr<T>& matrix, const TileGrid& grid,
                   const EncodeOptions& options) {
  check(grid);
  internal::check_same_shape(matrix, grid);
  if (options.force_spills && grid.buckets() < 2)
    throw Error(ErrorCode::InvalidArgument,
                "encode: forced spills need at least two buckets, the grid has one");
}

std::optional<Misfit> encode_pieces(Buckets& buckets, const Pieces& pieces, const TileGrid& grid,
                                    Executor& executor, const EncodeOptions& options) {
  if (!is_known_to_stay_home(pieces, grid, options))
    return encode_held(pieces, grid, options, executor, buckets);
  encode_at_home(pieces, grid, executor, buckets);
  return std::nullopt;
}

template <class Matrix>
EncodeResult encode_alone(const Matrix& matrix, const TileGrid& grid,
                          const EncodeOptions& options) {
  const auto alone = make_executor(ExecutorKind::Threads, 1);
  Buckets buckets;
  EncodeResult result;
  result.misfit = encode_into(buckets, matrix, grid, *alone, options);
  if (!result.misfit) result.buckets = std::move(buckets);
  return result;
}

}  // namespace

// The rest of the check comes with cutting, which walks over the columns anyway.
template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::Csr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options) {
  check_request(matrix, grid, options);
  sparse::check_all_but_columns(matrix);
  const auto pieces = internal::cut_to_pieces({matrix.row_begin, matrix.col}, grid, executor);
  if (!pieces) {
    sparse::check(matrix);  // throws, and says what is wrong
    TESSERA_ASSERT(pieces.has_value());
  }
  return encode_pieces(buckets, *pieces, grid, executor, options);
}

template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::CheckedCsr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options) {
  check_request(*matrix, grid, options);
  const auto pieces = internal::cut_to_pieces({matrix->row_begin, matrix->col}, grid, executor);
  TESSERA_ASSERT(pieces.has_value());
  return encode_pieces(buckets, *pieces, grid, executor, options);
}

template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options) {
  return encode_alone(matrix, grid, options);
}

template <class T>
EncodeResult encode(const sparse::CheckedCsr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options) {
  return encode_alone(matrix, grid, options);
}

#define TESSERA_ENCODE(T)                                                                       \
  template EncodeResult encode(const sparse::Csr<T>&, const TileGrid&, const EncodeOptions&);   \
  template EncodeResult encode(const sparse::CheckedCsr<T>&, const TileGrid&,                   \
                               const EncodeOptions&);                                           \
  template std::optional<Misfit> encode_into(Buckets&, const sparse::CheckedCsr<T>&,            \
                                             const TileGrid&, Executor&, const EncodeOptions&); \
  template std::optional<Misfit> encode_into(Buckets&, const sparse::Csr<T>&, const TileGrid&,  \
                                             Executor&, const EncodeOptions&);
TESSERA_ENCODE(float)
TESSERA_ENCODE(double)
#undef TESSERA_ENCODE

}  // namespace tessera::partitioner
