#include "tessera/partitioner/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/bucket_writer.hpp"
#include "tessera/partitioner/internal/moves.hpp"
#include "tessera/partitioner/internal/record_list.hpp"
#include "tessera/partitioner/internal/same_shape.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

using internal::Moves;
using internal::Pattern;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The arrival that a bucket takes in: its position in the new matrix.
struct Delivery {
  std::int64_t bucket = 0;
  std::int32_t position = 0;

  friend auto operator<=>(const Delivery&, const Delivery&) = default;
};

// What one task did to its buckets.
struct Outcome {
  SpillStats before, after;
  bool fits = true;
};

template <class Word>
class Updater {
 public:
  Updater(Buckets& buckets, const Pattern& matrix, Executor& executor)
      : buckets_(buckets),
        grid_(buckets.grid),
        matrix_(matrix),
        executor_(executor),
        lists_(internal::resize_lists<Word>(grid_, buckets)),
        held_(index(grid_.buckets())),
        first_(held_.size()),
        touched_(held_.size()) {}

  // The buckets that change, or none when one of them cannot take what is added to it.
  std::optional<std::vector<std::int64_t>> run(const Moves& moves) {
    renumber(moves);
    deliver(moves);
    std::vector<std::int64_t> changed;
    for (std::size_t b = 0; b < touched_.size(); ++b)
      if (touched_[b]) changed.push_back(static_cast<std::int64_t>(b));
    if (!rewrite(changed)) return std::nullopt;
    if (!buckets_.travel.stays_home()) buckets_.travel = internal::travel_of(grid_, lists_.meta);
    buckets_.stats.steps = buckets_.travel.steps();
    return changed;
  }

 private:
  // New positions into the source map; finds the buckets that lose blocks.
  void renumber(const Moves& moves) {
    executor_.for_each(grid_.buckets(), [&](std::int64_t b) {
      const auto begin = lists_.source.begin() + b * grid_.blocks;
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

  // A cell is cut into its buckets in order of positions, and stays so: an arrival goes to the last
  // bucket that begins before it, so that rows stay together, or to the nearest one with room.
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
    return bucket;  // which will turn out not to fit
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
      const std::int64_t begin = i * count / ranges, end = (i + 1) * count / ranges;
      outcomes[static_cast<std::size_t>(i)] = rewrite_some(std::span(changed).subspan(
          static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
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

  Buckets& buckets_;
  TileGrid grid_;
  Pattern matrix_;
  Executor& executor_;
  internal::BucketLists<Word> lists_;
  std::vector<std::int64_t> held_;    // [buckets] blocks, with those delivered
  std::vector<std::int32_t> first_;   // [buckets] least position in it
  std::vector<char> touched_;         // [buckets]
  std::vector<Delivery> deliveries_;  // by bucket
};

std::optional<std::vector<std::int64_t>> update_some(Buckets& buckets, const Pattern& matrix,
                                                     const Moves& moves, Executor& executor) {
  if (buckets.grid.word_bits == 16)
    return Updater<std::uint16_t>(buckets, matrix, executor).run(moves);
  return Updater<std::uint32_t>(buckets, matrix, executor).run(moves);
}

// Is encoding all cheaper? Measured on one core: a change costs some 60 ns, an element that is only
// encoded 3 ns with its value, a block of 16 x 16 125 ns; a bucket that changes costs about twice
// what it costs in an encode, where everything is read in order.
bool changes_most(const sparse::PatternChange& change, const Buckets& buckets) {
  const TileGrid& grid = buckets.grid;
  const std::int64_t changes = std::ssize(change.removed) + std::ssize(change.added);
  constexpr std::int64_t kFew = 64;  // too few to be worth a thought
  if (changes <= kFew) return false;
  if (grid.block.is_element() && 20 * changes > buckets.stats.blocks) return true;
  if (changes < grid.buckets()) return false;
  const std::int64_t x_step = ceil_div(grid.size.x / grid.block.rows, grid.splits.x);
  const std::int64_t y_step = ceil_div(grid.size.y / grid.block.cols, grid.splits.y);
  const std::int64_t cells = grid.splits.x * grid.splits.y;
  std::vector<char> touched(index(cells));
  for (const auto* places : {&change.removed, &change.added})
    for (const sparse::BlockAt& at : *places) {
      const std::int64_t cell = at.row / x_step * grid.splits.y + at.col / y_step;
      if (cell >= 0 && cell < cells) touched[index(cell)] = 1;  // what lies outside fails later
    }
  return 2 * std::count(touched.begin(), touched.end(), 1) > cells;
}

template <class T>
UpdateResult encode_afresh(Buckets& buckets, const sparse::Csr<T>& matrix, Executor& executor) {
  const TileGrid grid = buckets.grid;
  UpdateResult result{encode_into(buckets, matrix, grid, executor), true, {}};
  for (std::int64_t b = 0; b < grid.buckets(); ++b) result.changed.push_back(b);
  return result;
}

}  // namespace

template <class T>
UpdateResult update(Buckets& buckets, const sparse::Csr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor) {
  const TileGrid grid = buckets.grid;
  internal::check_same_shape(matrix, grid);
  sparse::check_all_but_columns(matrix);
  const Pattern pattern{matrix.row_begin, matrix.col};
  if (changes_most(change, buckets)) return encode_afresh(buckets, matrix, executor);
  const Moves moves = internal::find_moves(pattern, buckets.stats.blocks, change);
  if (auto changed = update_some(buckets, pattern, moves, executor))
    return {std::nullopt, false, std::move(*changed)};
  return encode_afresh(buckets, matrix, executor);
}

template UpdateResult update(Buckets&, const sparse::Csr<float>&, const sparse::PatternChange&,
                             Executor&);
template UpdateResult update(Buckets&, const sparse::Csr<double>&, const sparse::PatternChange&,
                             Executor&);

}  // namespace tessera::partitioner
