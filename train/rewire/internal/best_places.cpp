#include "tessera/train/rewire/internal/best_places.hpp"

#include <algorithm>
#include <numeric>

namespace tessera::train::internal {
namespace {

bool is_better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.at < b.at;
}

}  // namespace

BestPlaces::BestPlaces(std::int64_t k, std::int64_t most_at_once, float threshold)
    : k_(std::size_t(k)),
      capacity_(k_ + std::max(k_, std::size_t(most_at_once))),
      threshold_(threshold) {
  held_.reserve(capacity_);
}

void BestPlaces::add(std::span<const Candidate> candidates) {
  const std::lock_guard lock(mutex_);
  if (held_.size() + candidates.size() > capacity_) keep_best();
  held_.insert(held_.end(), candidates.begin(), candidates.end());
}

void BestPlaces::keep_best() {
  if (k_ == 0 || held_.size() <= k_) return held_.resize(std::min(held_.size(), k_));
  const auto last = held_.begin() + std::int64_t(k_) - 1;
  std::nth_element(held_.begin(), last, held_.end(), is_better);
  threshold_.store(last->score, std::memory_order_relaxed);
  held_.resize(k_);
}

// Places are counted by row, so that only the few of one row have to be sorted.
std::vector<sparse::BlockAt> BestPlaces::places() {
  keep_best();
  std::int32_t last_row = 0;
  for (const Candidate& c : held_) last_row = std::max(last_row, c.at.row);
  std::vector<std::size_t> next(std::size_t(last_row) + 2);
  for (const Candidate& c : held_) ++next[std::size_t(c.at.row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<sparse::BlockAt> result(held_.size());
  for (const Candidate& c : held_) result[next[std::size_t(c.at.row)]++] = c.at;
  std::size_t first = 0;
  for (std::size_t row = 0; row + 1 < next.size(); first = next[row++])
    std::sort(result.begin() + std::ptrdiff_t(first), result.begin() + std::ptrdiff_t(next[row]));
  return result;
}

}  // namespace tessera::train::internal
