#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/balance.hpp"
#include "tessera/partitioner/internal/figures.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/internal/record_writer.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

using internal::Holdings;

template <class T>
void check_same_shape(const sparse::Csr<T>& matrix, const TileGrid& grid) {
  if (matrix.rows == grid.size.x && matrix.cols == grid.size.y && matrix.block == grid.block)
    return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("encode: the matrix is {} x {} in blocks of {} x {}, the grid is for {} x "
                  "{} in blocks of {} x {}; re-block the matrix or plan for it",
                  matrix.rows, matrix.cols, matrix.block.rows, matrix.block.cols, grid.size.x,
                  grid.size.y, grid.block.rows, grid.block.cols));
}

// Writes what the holdings say, bucket by bucket.
template <class Word>
class BucketWriter {
 public:
  BucketWriter(const Holdings& holdings, Buckets& buckets)
      : holdings_(holdings),
        buckets_(buckets),
        writer_(holdings.grid()),
        meta_(buckets.meta.emplace<std::vector<Word>>()),
        grad_a_(buckets.grad_a_meta.emplace<std::vector<Word>>()) {
    const TileGrid& grid = holdings.grid();
    meta_.resize(static_cast<std::size_t>(grid.buckets() * grid.meta_words));
    grad_a_.resize(static_cast<std::size_t>(grid.buckets() * grid.grad_a_words));
    buckets_.source.assign(static_cast<std::size_t>(grid.buckets() * grid.blocks), -1);
  }

  void write(std::int64_t bucket) {
    words_.clear(), grad_a_words_.clear(), sources_.clear();
    internal::record_cells(holdings_, bucket, cells_);
    for (const std::int32_t cell : cells_) write_record(bucket, cell);
    const TileGrid& grid = holdings_.grid();
    place(words_, meta_, bucket, grid.meta_words - codelets::kEndMarkerWords);
    if (grid.separate_grad_a)
      place(grad_a_words_, grad_a_, bucket, grid.grad_a_words - codelets::kEndMarkerWords);
    TESSERA_ASSERT(static_cast<std::int64_t>(sources_.size()) <= grid.blocks);
    std::copy(sources_.begin(), sources_.end(), buckets_.source.begin() + bucket * grid.blocks);
    count();
  }

 private:
  void write_record(std::int64_t bucket, std::int32_t cell) {
    gatherer_.gather(holdings_, bucket, cell, record_);
    writer_.write_forward(record_, words_);
    if (holdings_.grid().separate_grad_a) writer_.write_grad_a(record_, grad_a_words_);
    sources_.insert(sources_.end(), record_.source.begin(), record_.source.end());
    buckets_.stats.blocks += record_.blocks();
    ++buckets_.stats.records;
    if (cell != holdings_.cell_of(bucket)) buckets_.stats.moved_blocks += record_.blocks();
  }

  void place(const std::vector<Word>& words, std::vector<Word>& all, std::int64_t bucket,
             std::int64_t capacity) {
    TESSERA_ASSERT(static_cast<std::int64_t>(words.size()) <= capacity);
    std::copy(words.begin(), words.end(),
              all.begin() + bucket * (capacity + codelets::kEndMarkerWords));
  }

  void count() {
    const auto raise = [](std::int64_t& most, std::size_t n, std::int64_t more) {
      most = std::max(most, static_cast<std::int64_t>(n) + more);
    };
    raise(buckets_.stats.fullest_words, words_.size(), codelets::kEndMarkerWords);
    raise(buckets_.stats.fullest_blocks, sources_.size(), 0);
    if (holdings_.grid().separate_grad_a)
      raise(buckets_.stats.fullest_grad_a_words, grad_a_words_.size(), codelets::kEndMarkerWords);
  }

  const Holdings& holdings_;
  Buckets& buckets_;
  internal::RecordWriter<Word> writer_;
  std::vector<Word>&meta_, &grad_a_;
  internal::Gatherer gatherer_;
  internal::RecordRows record_;
  std::vector<std::int32_t> cells_, sources_;
  std::vector<Word> words_, grad_a_words_;
};

template <class Word>
Buckets write_buckets(const Holdings& holdings) {
  Buckets buckets;
  buckets.grid = holdings.grid();
  buckets.travel = internal::travel_of(holdings);
  BucketWriter<Word> writer(holdings, buckets);
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b) writer.write(b);
  return buckets;
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
  stats.cut_rows =
      figures.row_parts - internal::count_rows(holdings.pieces(), holdings.grid().splits.z);
}

EncodeResult encode_pattern(const internal::Pattern& pattern, const TileGrid& grid,
                            const EncodeOptions& options) {
  const bool forced = options.force_spills;
  if (forced && grid.buckets() < 2)
    throw Error(ErrorCode::InvalidArgument,
                "encode: forced spills need at least two buckets, the grid has one");
  const internal::Pieces pieces = internal::cut_to_pieces(pattern, grid);
  Holdings holdings(pieces, grid);
  const internal::Balanced balanced = internal::balance(holdings, options);
  EncodeResult result;
  if (!balanced.left.empty())
    result.misfit = internal::make_misfit(holdings, balanced.left, forced);
  else if (grid.word_bits == 16)
    result.buckets = write_buckets<std::uint16_t>(holdings);
  else
    result.buckets = write_buckets<std::uint32_t>(holdings);
  if (result.buckets) add_spill_stats(holdings, balanced, result.buckets->stats);
  return result;
}

}  // namespace

template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options) {
  check(grid);
  check_same_shape(matrix, grid);
  sparse::check(matrix);
  return encode_pattern({matrix.row_begin, matrix.col}, grid, options);
}

template EncodeResult encode(const sparse::Csr<float>&, const TileGrid&, const EncodeOptions&);
template EncodeResult encode(const sparse::Csr<double>&, const TileGrid&, const EncodeOptions&);

}  // namespace tessera::partitioner
