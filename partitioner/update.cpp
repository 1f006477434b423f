#include "tessera/partitioner/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/partitioner/internal/bucket_writer.hpp"
#include "tessera/partitioner/internal/change_by_part.hpp"
#include "tessera/partitioner/internal/index.hpp"
#include "tessera/partitioner/internal/moves.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/internal/record_list.hpp"
#include "tessera/partitioner/internal/same_shape.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

using internal::index;
using internal::Moves;
using internal::Pattern;

// An added block, and the bucket that takes it.
struct Delivery {
  std::int64_t bucket = 0;
  std::int32_t position = 0;

  friend auto operator<=>(const Delivery&, const Delivery&) = default;
};

// The statistics of the buckets of one task before and after, and whether everything fitted.
struct Outcome {
  SpillStats before, after;
  bool fits = true;
};

bool all_at_home(const Buckets& buckets) {
  return buckets.travel.stays_home() && buckets.stats.moved_blocks == 0;
}

template <class Word>
class Updater {
 public:
  Updater(Buckets& buckets, const Pattern& matrix, const internal::ChangeByPart& change,
          const internal::Pieces& cut_again, Executor& executor)
      : buckets_(buckets),
        grid_(buckets.grid),
        matrix_(matrix),
        change_(change),
        cut_again_(cut_again),
        executor_(executor),
        at_home_(all_at_home(buckets)),
        lists_(internal::resize_lists<Word>(grid_, buckets)),
        held_(index(grid_.buckets())),
        first_(held_.size()),
        touched_(held_.size()) {}

  // Returns the buckets that change, or nothing if an added block does not fit in its bucket.
  std::optional<std::vector<std::int64_t>> run(const Moves& moves) {
    renumber(moves);
    deliver(moves);
    std::vector<std::int64_t> changed;
    for (std::size_t b = 0; b < touched_.size(); ++b)
      if (touched_[b]) changed.push_back(static_cast<std::int64_t>(b));
    if (!rewrite(changed)) return std::nullopt;
    if (!buckets_.travel.stays_home()) buckets_.travel = internal::travel_of(grid_, lists_.meta);
    SpillStats& stats = buckets_.stats;
    stats.steps = buckets_.travel.steps();
    // These two were found for the pattern before the change.
    stats.lower_bound_steps = stats.greedy_steps = 0;
    return changed;
  }

 private:
  bool is_cut_again(std::int64_t bucket) const {
    return !cut_again_.part_of(bucket).run_begin.empty();
  }

  static void shift(std::span<std::int32_t> slots, std::int32_t by) {
    if (by == 0) return;
    for (std::int32_t& slot : slots) slot += slot >= 0 ? by : 0;
  }

  // Writes the new positions into the source map, and finds the buckets that lose blocks.
  void renumber(const Moves& moves) {
    executor_.for_each(grid_.buckets(), [&](std::int64_t b) {
      touched_[index(b)] = is_cut_again(b);
      if (is_cut_again(b)) return;
      const auto begin = lists_.source.begin() + b * grid_.blocks;
      const internal::PartChange& part =
          change_.parts()[index(b / (grid_.splits.y * grid_.splits.z))];
      if (at_home_ && part.count() == 0)
        return shift({begin, begin + grid_.blocks}, static_cast<std::int32_t>(part.shift));
      const auto end = std::partition_point(begin, begin + grid_.blocks,
                                            [](std::int32_t block) { return block >= 0; });
      std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = -1;
      for (auto slot = begin; slot != end; ++slot) {
        least = std::min(least, *slot);
        most = std::max(most, *slot);
      }
      std::int32_t gone = 0;
      if (moves.reach(least, most))
        for (auto slot = begin; slot != end; ++slot) gone += (*slot = moves(*slot)) < 0;
      held_[index(b)] = end - begin - gone;
      first_[index(b)] = least;
      touched_[index(b)] = gone > 0;
    });
  }

  // The buckets of a cell hold consecutive stretches of positions, and this order is kept: an added
  // block is put into the last bucket that begins before its position, so that rows stay together,
  // or into the nearest one with a free slot.
  std::int64_t bucket_for(std::int64_t cell, std::int32_t position) const {
    std::int64_t bucket = cell;
    for (std::int64_t z = 1; z < grid_.splits.z; ++z)
      if (first_[index(cell + z)] <= position) bucket = cell + z;
    const auto has_room = [&](std::int64_t b) {
      return b >= cell && b < cell + grid_.splits.z && held_[index(b)] < grid_.blocks;
    };
    for (std::int64_t distance = 0; distance < grid_.splits.z; ++distance)
      for (const std::int64_t b : {bucket - distance, bucket + distance})
        if (has_room(b)) return b;
    return bucket;  // full: the writer will refuse the block
  }

  void deliver(const Moves& moves) {
    const std::int64_t x_step = ceil_div(grid_.size.x / grid_.block.rows, grid_.splits.x);
    const std::int64_t y_step = ceil_div(grid_.size.y / grid_.block.cols, grid_.splits.y);
    for (const internal::Arrival& arrival : moves.arrivals) {
      const std::int64_t bucket =
          bucket_for(grid_.bucket_index(arrival.at.row / x_step, arrival.at.col / y_step, 0),
                     arrival.position);
      ++held_[index(bucket)];
      deliveries_.push_back({bucket, arrival.position});
      touched_[index(bucket)] = 1;
    }
    std::sort(deliveries_.begin(), deliveries_.end());
  }

  bool rewrite(const std::vector<std::int64_t>& changed) {
    const std::int64_t count = std::ssize(changed);
    const std::int64_t ranges = std::min<std::int64_t>(count, 8 * executor_.threads());
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranges));
    executor_.for_each(ranges, [&](std::int64_t i) {
      const Range part = even_part(count, ranges, i);
      outcomes[static_cast<std::size_t>(i)] = rewrite_some(std::span(changed).subspan(
          static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size())));
    });
    SpillStats& stats = buckets_.stats;
    for (const Outcome& o : outcomes) {
      if (!o.fits) return false;
      stats.moved_blocks -= o.before.moved_blocks;
      stats.records -= o.before.records;
      internal::add_stats(stats, o.after);
    }
    stats.blocks = std::ssize(matrix_.col);
    return true;
  }

  Outcome rewrite_some(std::span<const std::int64_t> changed) {
    internal::BucketWriter<Word> writer(grid_, lists_);
    internal::RecordList records(grid_, matrix_);
    internal::RecordRows record;
    Outcome outcome;
    for (const std::int64_t bucket : changed) {
      if (is_cut_again(bucket)) {
        outcome.before.records += lists_.source[index(bucket * grid_.blocks)] >= 0;
        outcome.fits = write_home(bucket, writer, record);
        if (!outcome.fits) return outcome;
        continue;
      }
      records.take(bucket, lists_, outcome.before);
      const auto [first, last] = std::equal_range(
          deliveries_.begin(), deliveries_.end(), Delivery{bucket, 0},
          [](const Delivery& a, const Delivery& b) { return a.bucket < b.bucket; });
      for (auto d = first; d != last; ++d) records.add_home(bucket, d->position);
      writer.start(bucket);
      for (std::int64_t i = 0; i < records.size(); ++i) {
        records.gather(i, record);
        if (record.blocks == 0) continue;
        outcome.fits = writer.add(record);
        if (!outcome.fits) return outcome;
      }
      writer.finish();
    }
    outcome.after = writer.stats();
    return outcome;
  }

  bool write_home(std::int64_t bucket, internal::BucketWriter<Word>& writer,
                  internal::RecordRows& record) const {
    internal::home_record(cut_again_, bucket, bucket / grid_.splits.z, record);
    writer.start(bucket);
    if (record.blocks > 0 && !writer.add(record)) return false;
    writer.finish();
    return true;
  }

  Buckets& buckets_;
  TileGrid grid_;
  Pattern matrix_;
  const internal::ChangeByPart& change_;
  const internal::Pieces& cut_again_;
  Executor& executor_;
  bool at_home_;
  internal::BucketLists<Word> lists_;
  std::vector<std::int64_t> held_;    // [buckets] blocks, added ones included
  std::vector<std::int32_t> first_;   // [buckets] smallest position
  std::vector<char> touched_;         // [buckets]
  std::vector<Delivery> deliveries_;  // by bucket
};

std::optional<std::vector<std::int64_t>> update_some(Buckets& buckets, const Pattern& matrix,
                                                     const internal::ChangeByPart& change,
                                                     Executor& executor) {
  const auto cut_again =
      internal::cut_to_pieces(matrix, buckets.grid, change.cut_again(), executor);
  if (!cut_again) return std::nullopt;
  const Moves moves = internal::find_moves(matrix, buckets.stats.blocks, change);
  if (buckets.grid.word_bits == 16)
    return Updater<std::uint16_t>(buckets, matrix, change, *cut_again, executor).run(moves);
  return Updater<std::uint32_t>(buckets, matrix, change, *cut_again, executor).run(moves);
}

// Parts can be cut again on their own only if all blocks are at home. Elements that change in place
// need a table of all positions from the first change to the last, which is worth its cost only if
// few buckets change.
bool cheaper_all_afresh(const internal::ChangeByPart& change, const Buckets& buckets) {
  const TileGrid& grid = buckets.grid;
  const std::int64_t parts = std::ssize(change.cut_again());
  if (!all_at_home(buckets)) return 2 * parts > grid.splits.x;
  std::int64_t in_place = 0;
  for (const internal::PartChange& part : change.parts())
    if (!part.cut_again) in_place += part.count();
  constexpr std::int64_t kFew = 64;  // below this there is no time to gain
  if (in_place < kFew || !grid.block.is_element()) return parts == grid.splits.x;
  return 8 * (parts * grid.splits.y * grid.splits.z + in_place) > grid.buckets();
}

// True if many elements, or more than an eighth of the blocks, change in most x partitions.
// Everything is then encoded again, and sorting the changes by partition would only cost time.
// Judged from a sample; a wrong guess costs time and nothing else.
bool changes_everywhere(const sparse::PatternChange& change, const Buckets& buckets) {
  constexpr std::size_t kSome = 512;
  constexpr std::int64_t kMany = 4096;
  const TileGrid& grid = buckets.grid;
  // Each look at a long list costs a cache miss, and two for every partition meet most of them.
  const auto samples = static_cast<std::size_t>(std::clamp<std::int64_t>(grid.splits.x, 32, 256));
  const auto quarter = static_cast<std::size_t>(buckets.stats.blocks / 4);
  if (change.removed.size() + change.added.size() < (grid.block.is_element() ? kSome : quarter))
    return false;
  std::vector<char> met(index(grid.splits.x));
  for (const auto* list : {&change.removed, &change.added})
    for (std::size_t i = 0; i < list->size(); i += list->size() / samples + 1) {
      const std::int64_t x = (*list)[i].row / ceil_div(grid.size.x, grid.splits.x);
      if (x >= 0 && x < grid.splits.x) met[index(x)] = 1;
    }
  const auto parts = std::count(met.begin(), met.end(), char{1});
  const auto changes = static_cast<std::int64_t>(change.removed.size() + change.added.size());
  // Few changes are sorted in little time, which is well spent if a quarter of the partitions stay.
  const bool in_most = changes < kMany ? 4 * parts > 3 * grid.splits.x : 2 * parts > grid.splits.x;
  return in_most && 4 * changes > grid.buckets();
}

template <class Matrix>
UpdateResult encode_afresh(Buckets& buckets, const Matrix& matrix, Executor& executor) {
  const TileGrid grid = buckets.grid;
  UpdateResult result{encode_into(buckets, matrix, grid, executor), true, {}};
  for (std::int64_t b = 0; b < grid.buckets(); ++b) result.changed.push_back(b);
  return result;
}

// `matrix` in either type; `pattern` is its own.
template <class Matrix>
UpdateResult update_with(Buckets& buckets, const Matrix& matrix, const Pattern& pattern,
                         const sparse::PatternChange& change, Executor& executor) {
  const TileGrid grid = buckets.grid;
  if (all_at_home(buckets) && changes_everywhere(change, buckets))
    return encode_afresh(buckets, matrix, executor);
  internal::ChangeByPart by_part(change, pattern, grid);
  if (cheaper_all_afresh(by_part, buckets)) return encode_afresh(buckets, matrix, executor);
  if (!all_at_home(buckets)) by_part.cut_none_again();
  if (auto changed = update_some(buckets, pattern, by_part, executor))
    return {std::nullopt, false, std::move(*changed)};
  return encode_afresh(buckets, matrix, executor);
}

}  // namespace

template <class T>
UpdateResult update(Buckets& buckets, const sparse::Csr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor) {
  internal::check_same_shape(matrix, buckets.grid);
  sparse::check_all_but_columns(matrix);
  return update_with(buckets, matrix, {matrix.row_begin, matrix.col}, change, executor);
}

template <class T>
UpdateResult update(Buckets& buckets, const sparse::CheckedCsr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor) {
  internal::check_same_shape(*matrix, buckets.grid);
  return update_with(buckets, matrix, {matrix->row_begin, matrix->col}, change, executor);
}

template UpdateResult update(Buckets&, const sparse::CheckedCsr<float>&,
                             const sparse::PatternChange&, Executor&);
template UpdateResult update(Buckets&, const sparse::CheckedCsr<double>&,
                             const sparse::PatternChange&, Executor&);
template UpdateResult update(Buckets&, const sparse::Csr<float>&, const sparse::PatternChange&,
                             Executor&);
template UpdateResult update(Buckets&, const sparse::Csr<double>&, const sparse::PatternChange&,
                             Executor&);

}  // namespace tessera::partitioner
