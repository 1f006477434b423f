#include "tessera/partitioner/internal/spill_near.hpp"

#include <algorithm>
#include <array>
#include <tuple>

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
    const std::int64_t cell = splits_.z, x = splits_.y * cell, all = splits_.x * x;
    const auto ranges = forced_ ? std::array{cell, all, x} : std::array{cell, x, all};
    for (const std::int64_t range : ranges)
      for (const bool cut : {false, true})
        if (!left_.empty()) place_all(range, cut);
  }

  std::vector<Leftover> take_leftovers() { return std::move(left_); }

 private:
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
    for (std::int64_t dx = 0; dx < x_end; ++dx)
      for (std::int64_t dy = 0; dy < y_end; ++dy)
        for (std::int64_t dz = 0; dz < splits_.z; ++dz) {
          const std::int64_t x = (cell / splits_.y - dx + splits_.x) % splits_.x;
          const std::int64_t y = (cell % splits_.y - dy + splits_.y) % splits_.y;
          place(leftover, (x * splits_.y + y) * splits_.z + (z - dz + splits_.z) % splits_.z, cut);
          if (leftover.runs.empty()) return;
        }
  }

  // Places as many rows as fit, longest first; a row that does not fit does not stop the shorter
  // ones.
  void place(Leftover& leftover, std::int64_t bucket, bool cut) {
    const std::int32_t cell = holdings_.cell_of(leftover.bucket);
    if (!holdings_.may_take(bucket, cell)) return;
    holdings_.open(bucket, cell);
    bool was_cut = false;
    std::size_t stay = 0;
    for (Run run : leftover.runs) {
      if (holdings_.fits(run)) {
        holdings_.add(run);
        continue;
      }
      const std::int32_t n = cut ? holdings_.fitting_back(run) : 0;
      if (n > 0) {
        holdings_.add(run.suffix(n));
        run = run.without_suffix(n);
        was_cut = true;
      }
      leftover.runs[stay++] = run;
    }
    leftover.runs.resize(stay);
    if (was_cut) std::sort(leftover.runs.begin(), leftover.runs.end(), longer_row_first);
  }

  Holdings& holdings_;
  Dims splits_;
  bool forced_;
  std::vector<Leftover> left_;
};

}  // namespace

std::vector<Leftover> spill_near(Holdings& holdings, bool forced) {
  NearSpilling spilling(holdings, forced);
  spilling.strip();
  spilling.search();
  return spilling.take_leftovers();
}

}  // namespace tessera::partitioner::internal
