#include "tessera/partitioner/internal/spill_near.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

namespace tessera::partitioner::internal {
namespace {

class NearSpilling {
 public:
  NearSpilling(Holdings& holdings, bool forced)
      : holdings_(holdings), splits_(holdings.grid().splits), forced_(forced) {}

  void strip() {
    for (std::int64_t b = 0; b < holdings_.grid().buckets(); ++b) {
      const auto runs = holdings_.pieces().runs_of(b);
      if (runs.empty() || !(forced_ || holdings_.overfull(b))) continue;
      holdings_.evict(b);
      std::size_t kept = 0;
      if (!forced_) {
        holdings_.open(b, holdings_.cell_of(b));
        for (; kept < runs.size() && holdings_.fits(runs[kept]); ++kept) holdings_.add(runs[kept]);
      }
      left_.push_back({b, {runs.begin() + static_cast<std::ptrdiff_t>(kept), runs.end()}});
    }
  }

  void search() {
    note_open();
    const std::int64_t cell = splits_.z, x = splits_.y * cell, all = splits_.x * x;
    const auto ranges = forced_ ? std::array{cell, all, x} : std::array{cell, x, all};
    for (const std::int64_t range : ranges)
      for (const bool cut : {false, true})
        if (!left_.empty()) place_all(range, cut);
  }

  std::vector<Leftover> take_leftovers() { return std::move(left_); }

 private:
  // A bucket is open if it has enough capacity for the record of another cell. Few are where
  // capacity is short, and asking Holdings about all of them takes most of the time of a search.
  bool has_room_for_a_record(std::int64_t bucket) const {
    const Capacity room = holdings_.free(bucket);
    return room.blocks >= 1 && room.words >= holdings_.header().words + kRowWords + 1;
  }

  void note_open() {
    open_.resize(static_cast<std::size_t>(holdings_.grid().buckets()));
    for (std::size_t b = 0; b < open_.size(); ++b)
      open_[b] = has_room_for_a_record(static_cast<std::int64_t>(b)) ? kOpen : 0;
    holders_.assign(static_cast<std::size_t>(holdings_.cells()), {});
    for (std::int64_t b = 0; b < holdings_.grid().buckets(); ++b)
      holders_[static_cast<std::size_t>(holdings_.cell_of(b))].push_back(b);
  }

  void place_all(std::int64_t range, bool cut) {
    sort_biggest_first(range);
    for (Leftover& leftover : left_) {
      if (forced_)
        place_upwards(leftover, range, cut);
      else
        place_nearest(leftover, range, cut);
    }
    std::erase_if(left_, [](const Leftover& l) { return l.runs.empty(); });
  }

  void sort_biggest_first(std::int64_t range) {
    const auto key = [&](const Leftover& l) {
      const Capacity room = holdings_.alone(l.runs);
      return std::tuple(l.bucket / range, -room.words, -room.blocks, l.bucket);
    };
    std::sort(left_.begin(), left_.end(),
              [&](const Leftover& a, const Leftover& b) { return key(a) < key(b); });
  }

  void place_upwards(Leftover& leftover, std::int64_t range, bool cut) {
    const std::int64_t begin = leftover.bucket / range * range, own = leftover.bucket - begin;
    for (std::int64_t i = 1; i < range && !leftover.runs.empty(); ++i)
      place(leftover, begin + (own + i) % range, cut);
  }

  // A piece held at h is home after (home - h) mod splits steps, so the nearest holders are below
  // home.
  void place_nearest(Leftover& leftover, std::int64_t range, bool cut) {
    const std::int64_t x_end = range > splits_.y * splits_.z ? splits_.x : 1;
    const std::int64_t y_end = range > splits_.z ? splits_.y : 1;
    const std::int64_t cell = leftover.bucket / splits_.z, z = leftover.bucket % splits_.z;
    // Buckets that hold blocks of the cell may take more without a new record. The list grows while
    // it is used, by buckets that were visited already.
    std::vector<std::int64_t>& holders = holders_[static_cast<std::size_t>(cell)];
    const std::size_t known = holders.size();
    for (const std::int64_t b : holders) open_[static_cast<std::size_t>(b)] |= kHolder;
    const auto visit = [&] {
      for (std::int64_t dx = 0, x = cell / splits_.y; dx < x_end; ++dx, x = before(x, splits_.x))
        for (std::int64_t dy = 0, y = cell % splits_.y; dy < y_end; ++dy, y = before(y, splits_.y))
          for (std::int64_t dz = 0, at = z; dz < splits_.z; ++dz, at = before(at, splits_.z)) {
            const std::int64_t bucket = (x * splits_.y + y) * splits_.z + at;
            if (open_[static_cast<std::size_t>(bucket)] == 0) continue;
            if (place(leftover, bucket, cut)) holders.push_back(bucket);
            if (leftover.runs.empty()) return;
          }
    };
    visit();
    for (std::size_t i = 0; i < known; ++i) open_[static_cast<std::size_t>(holders[i])] &= ~kHolder;
  }

  static std::int64_t before(std::int64_t i, std::int64_t count) {
    return i == 0 ? count - 1 : i - 1;
  }

  // Places as many rows as fit, longest first; a row that does not fit does not stop the shorter
  // ones. Returns true if any was placed.
  bool place(Leftover& leftover, std::int64_t bucket, bool cut) {
    const std::int32_t cell = holdings_.cell_of(leftover.bucket);
    if (!holdings_.may_take(bucket, cell)) return false;
    holdings_.open(bucket, cell);
    bool was_cut = false, was_added = false;
    std::size_t stay = 0;
    for (Run run : leftover.runs) {
      if (holdings_.fits(run)) {
        holdings_.add(run);
        was_added = true;
        continue;
      }
      const std::int32_t n = cut ? holdings_.fitting_back(run) : 0;
      if (n > 0) {
        holdings_.add(run.suffix(n));
        run = run.without_suffix(n);
        was_cut = was_added = true;
      }
      leftover.runs[stay++] = run;
    }
    leftover.runs.resize(stay);
    if (was_cut) std::sort(leftover.runs.begin(), leftover.runs.end(), longer_row_first);
    if (was_added && !has_room_for_a_record(bucket))
      open_[static_cast<std::size_t>(bucket)] &= ~kOpen;
    return was_added;
  }

  Holdings& holdings_;
  Dims splits_;
  bool forced_;
  std::vector<Leftover> left_;

  // [buckets] kOpen, and kHolder for those that hold blocks of the cell that is being placed.
  static constexpr unsigned char kOpen = 1, kHolder = 2;
  std::vector<unsigned char> open_;
  // [cells] Buckets that hold, or may hold, blocks of the cell: its own, and those that took some.
  std::vector<std::vector<std::int64_t>> holders_;
};

}  // namespace

std::vector<Leftover> spill_near(Holdings& holdings, bool forced) {
  NearSpilling spilling(holdings, forced);
  spilling.strip();
  spilling.search();
  return spilling.take_leftovers();
}

}  // namespace tessera::partitioner::internal
