#include "tessera/host/best_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "tessera/base/error.hpp"
#include "tessera/base/select.hpp"

namespace tessera::host {
namespace {

bool is_better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.at < b.at;
}

void sort_row(std::span<sparse::BlockAt> places) {
  const auto before = [](sparse::BlockAt a, sparse::BlockAt b) { return a.col < b.col; };
  if (!std::is_sorted(places.begin(), places.end(), before))
    std::sort(places.begin(), places.end(), before);
}

}  // namespace

float score_of(MatrixView<const float> gradient, BlockShape block, codelets::BlockScore rule) {
  double sum = 0, most = 0;
  for (std::int64_t r = 0; r < gradient.rows; ++r)
    for (std::int64_t c = 0; c < gradient.cols; ++c) {
      const double size = std::abs(double(gradient(r, c)));
      sum += size;
      most = std::isnan(size) ? size : std::max(most, size);
    }
  switch (rule) {
    case codelets::BlockScore::Sum:
      return float(sum);
    case codelets::BlockScore::Max:
      return float(most);
    case codelets::BlockScore::Mean:
      return float(sum / double(block.area()));
  }
  return 0;
}

void refuse_score(sparse::BlockAt at, std::string_view name) {
  throw Error(ErrorCode::BadInput,
              fmt::format("growth of blocks: {}: the gradient in block row {}, block column {} is "
                          "not finite",
                          name, at.row, at.col));
}

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

// Many candidates keep their order, so that those of one thread remain in that of its rows, unless
// only some of those at the border are taken.
void BestPlaces::keep_best() {
  constexpr std::size_t kMany = 1 << 14;  // else the counts take more memory than the candidates
  if (k_ == 0 || held_.size() <= k_) return held_.resize(std::min(held_.size(), k_));
  if (held_.size() >= kMany) drop_below_border();
  if (held_.size() == k_) return;
  const auto last = held_.begin() + std::int64_t(k_) - 1;
  std::nth_element(held_.begin(), last, held_.end(), is_better);
  held_.resize(k_);
  threshold_.store(last->score, std::memory_order_relaxed);
}

// More than k candidates remain if many have the border's score. No branches that depend on the
// scores: what is dropped is overwritten.
void BestPlaces::drop_below_border() {
  const float border = border_of_largest(std::ssize(held_), std::int64_t(k_), [&](std::int64_t i) {
    return held_[std::size_t(i)].score;
  });
  std::size_t kept = 0;
  for (const Candidate& c : held_) {
    held_[kept] = c;
    kept += c.score >= border;
  }
  held_.resize(kept);
  threshold_.store(border, std::memory_order_relaxed);
}

// Places are counted by row, so that only the few of one row have to be sorted; those that one
// thread found are sorted already.
std::vector<sparse::BlockAt> BestPlaces::places() {
  keep_best();
  const auto before = [](const Candidate& a, const Candidate& b) { return a.at < b.at; };
  if (std::is_sorted(held_.begin(), held_.end(), before)) {
    std::vector<sparse::BlockAt> sorted(held_.size());
    std::transform(held_.begin(), held_.end(), sorted.begin(),
                   [](const Candidate& c) { return c.at; });
    return sorted;
  }
  std::int32_t last_row = 0;
  for (const Candidate& c : held_) last_row = std::max(last_row, c.at.row);
  std::vector<std::size_t> next(std::size_t(last_row) + 2);
  for (const Candidate& c : held_) ++next[std::size_t(c.at.row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<sparse::BlockAt> result(held_.size());
  for (const Candidate& c : held_) result[next[std::size_t(c.at.row)]++] = c.at;
  std::size_t first = 0;
  for (std::size_t row = 0; row + 1 < next.size(); first = next[row++])
    sort_row(std::span(result).subspan(first, next[row] - first));
  return result;
}

}  // namespace tessera::host
