#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/train/rewire/grow.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using internal::PlaceList;
using sparse::BlockAt;

constexpr double kShare = 1.0 / 8;  // of the columns of a batch

// Adds the squares of each column to its sum.
void add_squares(MatrixView<const float> m, std::vector<double>& sums) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t z = 0; z < m.cols; ++z)
      sums[std::size_t(z)] += double(m(r, z)) * double(m(r, z));
}

// Returns the largest sum of gradients that each column may have.
std::vector<double> column_weights(const GradientBatch& batch) {
  std::vector<double> left(std::size_t(batch.s.cols)), right(left.size());
  add_squares(batch.q_grad, left);
  add_squares(batch.s, right);
  for (std::size_t z = 0; z < left.size(); ++z) left[z] = std::sqrt(left[z] * right[z]);
  return left;
}

// A column of the sample, and how often it counts.
struct Drawn {
  std::int64_t column = 0;
  float times = 1;
};

// Draws columns until there is one, one in eight and at least one on average. `times` is the
// inverse of the probability with which a column is among those drawn.
std::vector<Drawn> draw_columns(const std::vector<double>& weights, Random& random) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double scale = std::max(kShare * double(weights.size()), 1.0) / sum;
  std::vector<double> probabilities;
  double none = 1;  // the probability that no column is drawn
  for (const double weight : weights) {
    probabilities.push_back(std::min(1.0, scale * weight));  // 1 if it is not a number
    none *= 1 - probabilities.back();
  }
  std::vector<Drawn> drawn;
  while (drawn.empty() && !weights.empty())
    for (std::size_t z = 0; z < weights.size(); ++z)
      if (random.unit() < probabilities[z])
        drawn.push_back({std::int64_t(z), float((1 - none) / probabilities[z])});
  return drawn;
}

Matrix<float> columns_of(MatrixView<const float> m, const std::vector<Drawn>& drawn, bool counts) {
  Matrix<float> columns(m.rows, std::ssize(drawn));
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::size_t i = 0; i < drawn.size(); ++i)
      columns(r, std::int64_t(i)) = m(r, drawn[i].column) * (counts ? drawn[i].times : 1.0f);
  return columns;
}

// The operands of the sample of each batch.
class ColumnSample {
 public:
  ColumnSample(std::span<const GradientBatch> batches, std::uint64_t seed) {
    Random random(seed);
    for (const GradientBatch& batch : batches) {
      const std::vector<Drawn> drawn = draw_columns(column_weights(batch), random);
      operands_.push_back(columns_of(batch.q_grad, drawn, true));
      operands_.push_back(columns_of(batch.s, drawn, false));
    }
    for (std::size_t i = 0; i < operands_.size(); i += 2)
      batches_.push_back({operands_[i].view(), operands_[i + 1].view()});
  }

  std::span<const GradientBatch> batches() const { return batches_; }

 private:
  std::vector<Matrix<float>> operands_;
  std::vector<GradientBatch> batches_;
};

// Returns the k places of largest score in row-major order; of equal scores the lower place is
// taken first. Throws if a score is not finite.
std::vector<BlockAt> best_of(std::span<const BlockAt> places, std::span<const float> scores,
                             std::int64_t k, std::string_view name) {
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  for (const std::size_t i : order)
    if (!(scores[i] <= host::kLargestScore)) host::refuse_score(places[i], name);
  std::nth_element(order.begin(), order.begin() + k, order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                   });
  order.resize(std::size_t(k));
  std::sort(order.begin(), order.end());
  std::vector<BlockAt> best;
  for (const std::size_t i : order) best.push_back(places[i]);
  return best;
}

}  // namespace

std::vector<BlockAt> shortlisted_gradients(const sparse::Csr<float>& taken,
                                           std::span<const GradientBatch> batches, std::int64_t k,
                                           std::int64_t candidates, BlockScore pool,
                                           std::uint64_t seed, Executor& executor,
                                           std::string_view name) {
  const std::int64_t listed = std::min(free_places(taken), candidates);
  if (k <= 0 || listed <= k)  // which also refuses a number that is not legal
    return largest_gradients(taken, batches, k, pool, executor, name);
  host::check_batches(taken, batches, name);
  const ColumnSample sample(batches, seed);
  const std::vector<BlockAt> places =
      largest_gradients(taken, sample.batches(), listed, pool, executor, name);
  const std::vector<float> scores = internal::scores_at(
      taken, batches, internal::list_of(taken.block_rows(), places), pool, executor);
  return best_of(places, scores, k, name);
}

}  // namespace tessera::train
