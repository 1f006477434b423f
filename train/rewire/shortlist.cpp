#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/train/rewire/grow.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using internal::PlaceList;
using sparse::BlockAt;

constexpr double kShare = 1.0 / 8;  // of the columns of a batch

double mean_of_row(MatrixView<const float> m, std::int64_t row) {
  std::array<double, 8> sums{};  // side by side, as one sum would wait for every addition
  constexpr std::int64_t kLanes = sums.size();
  const std::int64_t whole = m.cols / kLanes * kLanes;
  for (std::int64_t z = 0; z < whole; z += kLanes)
    for (std::int64_t i = 0; i < kLanes; ++i) sums[std::size_t(i)] += double(m(row, z + i));
  for (std::int64_t z = whole; z < m.cols; ++z) sums[0] += double(m(row, z));
  return std::accumulate(sums.begin(), sums.end(), 0.0) / double(m.cols);
}

// An operand of a batch as the mean of its columns and the deviations of the columns from it.
struct Centred {
  MatrixView<const float> columns;
  std::vector<float> mean;              // [rows]
  std::vector<double> squares_of_size;  // of the deviation of each column

  explicit Centred(MatrixView<const float> m)
      : columns(m), mean(std::size_t(m.rows)), squares_of_size(std::size_t(m.cols)) {
    if (m.cols == 0) return;
    for (std::int64_t r = 0; r < m.rows; ++r) {
      const auto own = mean[std::size_t(r)] = float(mean_of_row(m, r));
      for (std::int64_t z = 0; z < m.cols; ++z)
        squares_of_size[std::size_t(z)] += square(double(m(r, z)) - double(own));
    }
  }

  static double square(double number) { return number * number; }
};

// A column of the sample, and how often its deviation counts.
struct Drawn {
  std::int64_t column = 0;
  float times = 1;
};

// Draws columns, one in eight and at least one on average, with probabilities in proportion to the
// largest sum of gradients that their deviations may have. `times` is the inverse of the
// probability. Nothing is drawn if all columns are equal, because the mean has all of them then.
std::vector<Drawn> draw_columns(const Centred& q_grad, const Centred& s, Random& random) {
  std::vector<double> weights(q_grad.squares_of_size.size());
  for (std::size_t z = 0; z < weights.size(); ++z)
    weights[z] = std::sqrt(q_grad.squares_of_size[z] * s.squares_of_size[z]);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum == 0) return {};
  const double scale = std::max(kShare * double(weights.size()), 1.0) / sum;
  std::vector<Drawn> drawn;
  for (std::size_t z = 0; z < weights.size(); ++z) {
    const double probability = std::min(1.0, scale * weights[z]);  // 1 if it is not a number
    if (random.unit() < probability) drawn.push_back({std::int64_t(z), float(1 / probability)});
  }
  return drawn;
}

// Returns the deviations of the drawn columns and then the mean, which counts as often as the batch
// has columns.
Matrix<float> columns_of(const Centred& from, const std::vector<Drawn>& drawn, bool counts) {
  const MatrixView<const float> m = from.columns;
  if (m.cols == 0) return Matrix<float>(m.rows, 0);
  Matrix<float> columns(m.rows, std::ssize(drawn) + 1);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const float mean = from.mean[std::size_t(r)];
    for (std::size_t i = 0; i < drawn.size(); ++i)
      columns(r, std::int64_t(i)) =
          (m(r, drawn[i].column) - mean) * (counts ? drawn[i].times : 1.0f);
    columns(r, std::ssize(drawn)) = mean * (counts ? float(m.cols) : 1.0f);
  }
  return columns;
}

// The operands of the sample of each batch. The gradient of a batch is that of the deviations and
// that of the mean, whose product is exact and costs one column. Deviations are smaller than
// columns, so that a sample of them is wrong by less.
class ColumnSample {
 public:
  ColumnSample(std::span<const GradientBatch> batches, std::uint64_t seed) {
    Random random(seed);
    for (const GradientBatch& batch : batches) {
      const Centred q_grad(batch.q_grad), s(batch.s);
      const std::vector<Drawn> drawn = draw_columns(q_grad, s, random);
      operands_.push_back(columns_of(q_grad, drawn, true));
      operands_.push_back(columns_of(s, drawn, false));
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
