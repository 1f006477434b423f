#include "tessera/partitioner/internal/place.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::partitioner::internal {
namespace {

std::int64_t count_blocks(std::span<const Run> runs) {
  std::int64_t blocks = 0;
  for (const Run& run : runs) blocks += run.count;
  return blocks;
}

// Rarely do more blocks than this leave a bucket, and then one cut row matters little.
constexpr std::int64_t kMostSums = 1024;

// The sums in 0 .. kMostSums that subsets of some runs can have, one bit each.
class Sums {
 public:
  Sums() { words_[0] = 1; }
  bool has(std::int64_t sum) const {
    return words_[static_cast<std::size_t>(sum / 64)] >> (sum % 64) & 1;
  }
  // Adds a run of that length; calls is_new(sum) for every sum that becomes possible.
  template <class IsNew>
  void add(std::int64_t length, IsNew&& is_new) {
    const auto whole = static_cast<std::size_t>(length / 64);
    const std::int64_t part = length % 64;
    for (std::size_t i = words_.size(); i-- > whole;) {  // downwards: each run counts once
      std::uint64_t moved = words_[i - whole] << part;
      if (part > 0 && i > whole) moved |= words_[i - whole - 1] >> (64 - part);
      std::uint64_t added = moved & ~words_[i];
      words_[i] |= added;
      for (; added != 0; added &= added - 1)
        is_new(static_cast<std::int64_t>(64 * i) + std::countr_zero(added));
    }
  }

 private:
  std::array<std::uint64_t, kMostSums / 64 + 1> words_{};
};

// Chooses runs, given longest first, with as many blocks together as possible but at most `most`,
// which is at most kMostSums. Returns their indices, ascending. Short runs are preferred. O(runs *
// most / 64 + most).
std::vector<std::size_t> whole_runs(const std::vector<Run>& runs, std::int64_t most) {
  // For each sum: the longest run in the set of short runs that reached the sum first.
  std::array<std::size_t, kMostSums + 64> last;
  Sums sums;
  for (std::size_t i = runs.size(); i-- > 0 && !sums.has(most) && runs[i].count <= most;)
    sums.add(runs[i].count, [&](std::int64_t sum) { last[static_cast<std::size_t>(sum)] = i; });
  std::vector<std::size_t> chosen;
  std::int64_t sum = most;
  while (!sums.has(sum)) --sum;
  for (; sum > 0; sum -= runs[chosen.back()].count)
    chosen.push_back(last[static_cast<std::size_t>(sum)]);
  return chosen;
}

// Moves `leave` blocks from `stay` (longest first) to `leaving`: whole rows, and the end of one
// more row if whole rows do not give that number.
void choose_leaving(std::vector<Run>& stay, std::int64_t leave, std::vector<Run>& leaving) {
  for (; leave > kMostSums && stay.back().count <= leave; stay.pop_back()) {
    leave -= stay.back().count;
    leaving.push_back(stay.back());
  }
  const std::vector<std::size_t> chosen = whole_runs(stay, std::min(leave, kMostSums));
  for (const std::size_t i : chosen) {
    leave -= stay[i].count;
    leaving.push_back(std::exchange(stay[i], Run{}));
  }
  std::erase_if(stay, [](const Run& run) { return run.count == 0; });
  while (leave > 0 && !stay.empty()) {
    const auto part = static_cast<std::int32_t>(std::min<std::int64_t>(leave, stay.back().count));
    leaving.push_back(stay.back().suffix(part));
    stay.back() = stay.back().without_suffix(part);
    leave -= part;
    if (stay.back().count == 0) stay.pop_back();
  }
}

class Placing {
 public:
  Placing(Holdings& holdings, const Travel& travel)
      : holdings_(holdings), travel_(travel), z_(holdings.grid().splits.z) {
    unmet_.resize(static_cast<std::size_t>(holdings.cells()));
  }

  Placed run(const Routing& routing, bool may_grow) {
    strip_all(routing.shipments);
    for (Pool& pool : pools_) stay_inside(pool);
    for (Pool& pool : pools_)
      for (const Shipment& s : pool.shipments) ship(pool, holder(pool.cell, s.dx, s.dy), s.blocks);
    for (Pool& pool : pools_) repair(pool);
    std::erase_if(pools_, [](const Pool& pool) { return pool.runs.empty(); });
    while (may_grow && !pools_.empty() && grow()) {
    }
    return {pools_.empty(), std::move(unmet_)};
  }

 private:
  // The runs that leave the buckets of a cell, and their destinations.
  struct Pool {
    std::int64_t cell = 0;
    std::vector<Run> runs;
    std::span<const Shipment> shipments;
  };

  std::int64_t holder(std::int64_t cell, std::int64_t dx, std::int64_t dy) const {
    const Dims& splits = holdings_.grid().splits;
    const std::int64_t x = (cell / splits.y - dx + splits.x) % splits.x;
    return x * splits.y + (cell % splits.y - dy + splits.y) % splits.y;
  }

  void strip_all(std::span<const Shipment> shipments) {
    for (std::int64_t cell = 0; cell < holdings_.cells(); ++cell) {
      std::size_t count = 0;
      while (count < shipments.size() && shipments[count].from == cell) ++count;
      strip(cell, shipments.first(count));
      shipments = shipments.subspan(count);
    }
  }

  void strip(std::int64_t cell, std::span<const Shipment> shipments) {
    std::int64_t leave = 0;
    for (const Shipment& s : shipments) leave += s.blocks;
    Pool pool{cell, {}, shipments};
    const std::vector<std::int64_t> shares = leaving_shares(cell, leave);
    for (std::int64_t z = 0; z < z_; ++z)
      if (shares[static_cast<std::size_t>(z)] > 0)
        strip_bucket(cell * z_ + z, shares[static_cast<std::size_t>(z)], pool.runs);
    if (pool.runs.empty()) return;
    std::sort(pool.runs.begin(), pool.runs.end(), longer_row_first);
    pools_.push_back(std::move(pool));
  }

  // The number of blocks that each bucket of a cell gives: as many as it must, and `leave` in all.
  std::vector<std::int64_t> leaving_shares(std::int64_t cell, std::int64_t leave) const {
    std::vector<std::int64_t> shares;
    for (std::int64_t b = cell * z_; b < (cell + 1) * z_; ++b) {
      shares.push_back(holdings_.overfull(b) ? must_leave(b) : 0);
      leave -= shares.back();
    }
    const auto rest = [&](std::int64_t z) {
      return holdings_.used(cell * z_ + z).blocks - shares[static_cast<std::size_t>(z)];
    };
    while (leave > 0) {  // the fullest bucket gives, down to the level of the others
      std::int64_t fullest = 0, next = 0;
      for (std::int64_t z = 1; z < z_; ++z)
        if (rest(z) > rest(fullest)) fullest = z;
      for (std::int64_t z = 0; z < z_; ++z)
        if (z != fullest) next = std::max(next, rest(z));
      const std::int64_t part =
          std::min({leave, rest(fullest), std::max<std::int64_t>(1, rest(fullest) - next)});
      shares[static_cast<std::size_t>(fullest)] += part;
      leave -= part;
    }
    return shares;
  }

  // Returns at least one, because separate GradA words are only counted when the rest is put back.
  std::int64_t must_leave(std::int64_t bucket) const {
    Capacity room = holdings_.capacity() - holdings_.header();
    std::int64_t kept = 0;
    for (const Run& run : holdings_.pieces().runs_of(bucket)) {
      room.words -= kRowWords;
      const std::int64_t most = std::min({std::int64_t{run.count}, room.words, room.blocks});
      if (most <= 0) break;
      kept += most;
      room.words -= most, room.blocks -= most;
    }
    return std::max<std::int64_t>(1, holdings_.used(bucket).blocks - kept);
  }

  void strip_bucket(std::int64_t bucket, std::int64_t leave, std::vector<Run>& leaving) {
    const auto runs = holdings_.pieces().runs_of(bucket);
    std::vector<Run> stay(runs.begin(), runs.end());
    choose_leaving(stay, leave, leaving);
    holdings_.evict(bucket);
    holdings_.open(bucket, holdings_.cell_of(bucket));
    for (const Run& run : stay) {
      if (holdings_.fits(run))
        holdings_.add(run);
      else
        leaving.push_back(run);
    }
  }

  // More blocks may leave a bucket than its cell sends. The difference is put into the other
  // buckets of the cell.
  void stay_inside(Pool& pool) {
    std::int64_t stay = count_blocks(pool.runs);
    for (const Shipment& s : pool.shipments) stay -= s.blocks;
    if (stay > 0) ship(pool, pool.cell, stay);
  }

  void ship(Pool& pool, std::int64_t to, std::int64_t blocks) {
    buckets_.clear();
    for (std::int64_t b = to * z_; b < (to + 1) * z_; ++b) buckets_.push_back(b);
    std::stable_sort(buckets_.begin(), buckets_.end(), [&](std::int64_t a, std::int64_t b) {
      return holdings_.free(a).blocks > holdings_.free(b).blocks;
    });
    for (const bool cut : {false, true})
      for (const std::int64_t bucket : buckets_)
        if (blocks > 0 && !pool.runs.empty()) blocks -= put(pool, bucket, blocks, cut);
    unmet_[static_cast<std::size_t>(to)] += pool.runs.empty() ? 0 : blocks;
  }

  void repair(Pool& pool) {
    for (const bool cut : {false, true})
      for (std::int64_t dx = 0; dx < travel_.x_end(); ++dx)
        for (std::int64_t dy = 0; dy < travel_.y_end[static_cast<std::size_t>(dx)]; ++dy)
          for (std::int64_t z = 0; z < z_ && !pool.runs.empty(); ++z)
            put(pool, holder(pool.cell, dx, dy) * z_ + z, count_blocks(pool.runs), cut);
  }

  // Visits one more y distance at every x distance. Returns false if there is none.
  bool grow() {
    bool grown = false;
    for (std::int64_t dx = 0; dx < travel_.x_end(); ++dx) {
      std::int32_t& y_end = travel_.y_end[static_cast<std::size_t>(dx)];
      if (y_end == 0 || y_end == holdings_.grid().splits.y || pools_.empty()) continue;
      grown = true;
      for (Pool& pool : pools_)
        for (const bool cut : {false, true})
          for (std::int64_t z = 0; z < z_ && !pool.runs.empty(); ++z)
            put(pool, holder(pool.cell, dx, y_end) * z_ + z, count_blocks(pool.runs), cut);
      ++y_end;
      std::erase_if(pools_, [](const Pool& pool) { return pool.runs.empty(); });
    }
    return grown;
  }

  // Puts at most `most` blocks into a bucket and returns how many it put.
  std::int64_t put(Pool& pool, std::int64_t bucket, std::int64_t most, bool cut) {
    const auto cell = static_cast<std::int32_t>(pool.cell);
    if (!holdings_.may_take(bucket, cell)) return 0;
    holdings_.open(bucket, cell);
    std::int64_t left = most;
    std::size_t stay = 0;
    for (Run run : pool.runs) {
      const auto n = static_cast<std::int32_t>(
          std::min<std::int64_t>({left, run.count, cut ? holdings_.fitting_back(run) : run.count}));
      if (n > 0 && (cut || n == run.count) && holdings_.fits(run.suffix(n))) {
        holdings_.add(run.suffix(n));
        run = run.without_suffix(n);
        left -= n;
      }
      if (run.count > 0) pool.runs[stay++] = run;
    }
    pool.runs.resize(stay);
    if (cut) std::sort(pool.runs.begin(), pool.runs.end(), longer_row_first);
    return most - left;
  }

  Holdings& holdings_;
  Travel travel_;
  std::int64_t z_;
  std::vector<Pool> pools_;
  std::vector<std::int64_t> unmet_;
  std::vector<std::int64_t> buckets_;  // of the receiving cell, emptiest first
};

}  // namespace

Placed place(Holdings& holdings, const Travel& travel, const Routing& routing, bool may_grow) {
  return Placing(holdings, travel).run(routing, may_grow);
}

}  // namespace tessera::partitioner::internal
