#include "tessera/train/rewire/internal/sample.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::train::internal {
namespace {

constexpr int kTableBits = 12;

// The random numbers of one row: those of Steele, Lea and Flood's SplitMix, which need no state
// beside a counter.
class RowRandom {
 public:
  RowRandom(std::uint64_t seed, std::int64_t row)
      : counter_(mixed(seed + mixed(std::uint64_t(row) + 1))) {}

  // Returns 64 random bits.
  std::uint64_t bits() { return mixed(counter_ += 0x9e3779b97f4a7c15); }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t counter_;
};

}  // namespace

// Entry i is the probability of a gap above i, times 2^32. Products of doubles are the same on
// every computer.
SampleRows::SampleRows(const sparse::Csr<float>& taken, double probability, std::uint64_t seed)
    : taken_(taken), probability_(probability), seed_(seed) {
  constexpr double kScale = 4294967296.0;  // 2^32
  constexpr std::int64_t kFewest = 16, kMost = 4096;
  if (probability >= 1) return;
  // Four mean gaps: one in fifty random numbers says that another one is needed.
  const auto entries = std::clamp(
      static_cast<std::int64_t>(std::min(4 / probability, double(kMost))), kFewest, kMost);
  double above = 1;
  for (std::int64_t i = 0; i < entries; ++i) {
    above *= 1 - probability;
    below_.push_back(static_cast<std::uint32_t>(std::min(above * kScale, kScale - 1)));
  }
  least_gap_.resize(std::size_t{1} << kTableBits);
  std::int32_t gap = 0;
  for (std::size_t bin = least_gap_.size(); bin-- > 0;) {
    const auto largest = static_cast<std::uint32_t>(((bin + 1) << (32 - kTableBits)) - 1);
    while (gap < std::ssize(below_) && largest < below_[std::size_t(gap)]) ++gap;
    least_gap_[bin] = gap;
  }
}

// Places that are taken are drawn as well, and overwritten by the next one.
std::size_t SampleRows::draw_columns(std::int64_t row, const char* is_taken,
                                     std::int32_t* to) const {
  const std::int64_t cols = taken_.block_cols();
  std::size_t count = 0;
  const auto add = [&](std::int64_t col) {
    to[count] = static_cast<std::int32_t>(col);
    count += is_taken[col] == 0;
  };
  if (below_.empty()) {
    for (std::int64_t col = 0; col < cols; ++col) add(col);
    return count;
  }
  RowRandom random(seed_, row);
  const auto entries = std::ssize(below_);
  std::int64_t col = 0;
  for (;;) {
    const std::uint64_t both = random.bits();
    for (const auto number :
         {static_cast<std::uint32_t>(both >> 32), static_cast<std::uint32_t>(both)}) {
      std::int64_t gap = least_gap_[number >> (32 - kTableBits)];
      while (gap < entries && number < below_[std::size_t(gap)]) ++gap;
      col += gap;
      if (col >= cols) return count;
      if (gap == entries) continue;  // the gap goes on
      add(col++);
    }
  }
}

// Marking all taken places of a row costs more than searching for the few that are drawn.
std::size_t SampleRows::draw(std::int64_t row, std::span<char> is_taken,
                             std::span<std::int32_t> to) const {
  const auto begin = taken_.col.begin() + taken_.row_begin[std::size_t(row)],
             end = taken_.col.begin() + taken_.row_begin[std::size_t(row) + 1];
  constexpr double kFewShare = 1.0 / 16;
  if (probability_ * double(taken_.block_cols()) < kFewShare * double(end - begin)) {
    const std::size_t drawn = draw_columns(row, is_taken.data(), to.data());
    return std::size_t(
        std::remove_if(to.begin(), to.begin() + std::ptrdiff_t(drawn),
                       [&](std::int32_t col) { return std::binary_search(begin, end, col); }) -
        to.begin());
  }
  for (auto at = begin; at != end; ++at) is_taken[std::size_t(*at)] = 1;
  const std::size_t count = draw_columns(row, is_taken.data(), to.data());
  for (auto at = begin; at != end; ++at) is_taken[std::size_t(*at)] = 0;
  return count;
}

}  // namespace tessera::train::internal
