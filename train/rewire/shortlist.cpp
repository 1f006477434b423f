#include <algorithm>
#include <optional>

#include "tessera/host/best_places.hpp"
#include "tessera/train/rewire/grow.hpp"
#include "tessera/train/rewire/internal/gradient_factors.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;

// Returns the k places of largest score in row-major order; of equal scores the lower place is
// taken first. Throws if a score is not finite.
std::vector<BlockAt> best_of(std::span<const BlockAt> places, std::span<const float> scores,
                             std::int64_t k, std::string_view name) {
  std::vector<host::Candidate> candidates;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!(scores[i] <= host::kLargestScore)) host::refuse_score(places[i], name);
    candidates.push_back({scores[i], places[i]});
  }
  host::BestPlaces best(k, std::ssize(candidates));
  best.add(candidates);
  return best.places();
}

// Returns the batches in parts of a few columns. Copies of the operands of a part then stay in the
// caches and in memory that the allocator has at hand.
std::vector<GradientBatch> parts_of(std::span<const GradientBatch> batches) {
  constexpr std::int64_t kColumns = 512;
  std::vector<GradientBatch> parts;
  for (const GradientBatch& b : batches)
    for (std::int64_t first = 0; first < b.s.cols; first += kColumns) {
      const Range cols{first, std::min(first + kColumns, b.s.cols)};
      parts.push_back({b.q_grad.sub({0, b.q_grad.rows}, cols), b.s.sub({0, b.s.rows}, cols)});
    }
  return parts;
}

}  // namespace

std::vector<BlockAt> shortlisted_gradients(const GradientSearch& search,
                                           const Candidates& candidates, Executor& executor) {
  const auto& [taken, batches, k, pool, name, likely] = search;
  const std::int64_t listed = std::min(free_places(taken), candidates.count);
  if (k <= 0 || listed <= k)  // which also refuses a number that is not legal
    return exact_gradients(search, executor);
  host::check_batches(taken, batches, name);
  const auto factors = internal::gradient_factors(batches, candidates.seed, executor);
  if (!factors) return exact_gradients(search, executor);
  const GradientBatch nearly = factors->operands();
  const std::vector<BlockAt> places =
      exact_gradients({taken, {&nearly, 1}, listed, pool, name}, executor);
  const std::vector<float> scores = internal::scores_at(
      taken, parts_of(batches), internal::list_of(taken.block_rows(), places), pool, executor);
  return best_of(places, scores, k, name);
}

}  // namespace tessera::train
