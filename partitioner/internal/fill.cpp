#include "tessera/partitioner/internal/fill.hpp"

#include <algorithm>
#include <array>

namespace tessera::partitioner::internal {
namespace {

// The runs to be poured from one bucket; those before `next` are already poured.
struct Stream {
  std::int64_t bucket = 0;
  std::vector<Run> runs;
  std::size_t next = 0;

  bool empty() const { return next == runs.size(); }
};

class Filling {
 public:
  explicit Filling(Holdings& holdings) : holdings_(holdings), splits_(holdings.grid().splits) {}

  void strip(Stay stay) {
    const std::int64_t buckets = holdings_.grid().buckets();
    closed_.assign(static_cast<std::size_t>(buckets), false);
    for (std::int64_t b = 0; b < buckets; ++b) {
      if (!holdings_.overfull(b)) continue;
      const auto runs = holdings_.pieces().runs_of(b);
      Stream stream{b, {runs.begin(), runs.end()}};
      if (stay == Stay::ShortRows) std::reverse(stream.runs.begin(), stream.runs.end());
      holdings_.evict(b);
      pour(stream, b);
      closed_[static_cast<std::size_t>(b)] = true;
      streams_.push_back(std::move(stream));
    }
  }

  // Pours inside each group of `range` neighbouring buckets.
  void fill_groups(std::int64_t range) {
    for (std::size_t first = 0, last; first < streams_.size(); first = last) {
      const std::int64_t group = streams_[first].bucket / range;
      last = first + 1;
      while (last < streams_.size() && streams_[last].bucket / range == group) ++last;
      fill_group(group * range, range, first, last);
    }
  }

  std::vector<Leftover> leftovers() const {
    std::vector<Leftover> left;
    for (const Stream& s : streams_)
      if (!s.empty())
        left.push_back(
            {s.bucket, {s.runs.begin() + static_cast<std::ptrdiff_t>(s.next), s.runs.end()}});
    return left;
  }

 private:
  // Returns true if the whole stream fitted in the bucket.
  bool pour(Stream& stream, std::int64_t bucket) {
    const std::int32_t cell = holdings_.cell_of(stream.bucket);
    if (!holdings_.may_take(bucket, cell)) return stream.empty();
    holdings_.open(bucket, cell);
    for (; !stream.empty(); ++stream.next) {
      Run& run = stream.runs[stream.next];
      const std::int32_t n = holdings_.fitting_front(run);
      if (n > 0) holdings_.add(run.prefix(n));
      run = run.without_prefix(n);
      if (run.count > 0) return false;
    }
    return true;
  }

  // Bucket `i` of a group in pouring order. Pieces travel towards higher partitions, so the bucket
  // one partition before the first stream is filled first: most steps are then one partition long.
  std::int64_t nth_bucket(std::int64_t begin, std::int64_t range, std::int64_t i) const {
    const std::int64_t y_part = range > splits_.z ? splits_.y : 1;
    const std::int64_t z = i % splits_.z, y = i / splits_.z % y_part;
    const std::int64_t x_part = range / (y_part * splits_.z), x = i / (y_part * splits_.z);
    return begin + (((x + x_part - 1) % x_part) * y_part + (y + y_part - 1) % y_part) * splits_.z +
           z;
  }

  void fill_group(std::int64_t begin, std::int64_t range, std::size_t first, std::size_t last) {
    std::int64_t i = 0;
    for (std::size_t s = first; s < last; ++s)
      for (; !streams_[s].empty() && i < range; ++i) {
        const std::int64_t bucket = nth_bucket(begin, range, i);
        if (closed_[static_cast<std::size_t>(bucket)]) continue;
        if (pour(streams_[s], bucket)) break;
        closed_[static_cast<std::size_t>(bucket)] = true;
      }
  }

  Holdings& holdings_;
  Dims splits_;
  std::vector<Stream> streams_;  // by bucket
  std::vector<bool> closed_;
};

}  // namespace

std::vector<Leftover> fill(Holdings& holdings, Stay stay) {
  const Dims splits = holdings.grid().splits;
  Filling filling(holdings);
  filling.strip(stay);
  for (const std::int64_t range : {splits.z, splits.y * splits.z, splits.x * splits.y * splits.z})
    filling.fill_groups(range);
  return filling.leftovers();
}

}  // namespace tessera::partitioner::internal
