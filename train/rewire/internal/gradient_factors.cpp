#include "tessera/train/rewire/internal/gradient_factors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train::internal {
namespace {

constexpr std::int64_t kRank = 32;

// Returns true if three products of this rank, and that of the factors, cost at most half of the
// gradient.
bool pays(std::span<const GradientBatch> batches) {
  const std::int64_t columns = columns_of(batches);
  if (columns == 0) return false;
  const GradientBatch& any = batches[0];
  if (any.q_grad.rows == 0 || any.s.rows == 0) return false;
  const double share =
      2.0 / double(any.s.rows) + 1.0 / double(any.q_grad.rows) + 1.0 / double(columns);
  return double(kRank) * share <= 0.5;
}

// Returns the sum of left * transpose(right) over all pairs.
Matrix<float> sum_of_products(std::span<const GradientBatch> pairs, Executor& executor) {
  Matrix<float> sums(pairs[0].q_grad.rows, pairs[0].s.rows);
  host::for_each_gradient_panel(host::gradient_panel_size(), pairs, executor,
                                [&](const host::PanelAt& at, MatrixView<const float> panel) {
                                  for (std::int64_t r = 0; r < panel.rows; ++r)
                                    std::copy_n(panel.row(r), panel.cols,
                                                &sums(at.rows.begin + r, at.cols.begin));
                                });
  return sums;
}

// The vector that each row of S is added to, and its sign there.
class Mixing {
 public:
  Mixing(std::int64_t rows, std::uint64_t seed)
      : vector_(std::size_t(rows)), sign_(std::size_t(rows)) {
    Random random(seed);
    for (std::int64_t& vector : vector_) vector = random.below(kRank);
    for (float& sign : sign_) sign = random.sign();
  }

  // Returns the sums [kRank][z] of the rows of S.
  Matrix<float> operator()(MatrixView<const float> s) const {
    Matrix<float> mixed(kRank, s.cols);
    for (std::int64_t r = 0; r < s.rows; ++r) {
      const float sign = sign_[std::size_t(r)];
      float* const to = mixed.view().row(vector_[std::size_t(r)]);
      if (s.rows_are_contiguous())
        for (std::int64_t z = 0; z < s.cols; ++z) to[z] += sign * s.row(r)[z];
      else
        for (std::int64_t z = 0; z < s.cols; ++z) to[z] += sign * s(r, z);
    }
    return mixed;
  }

 private:
  std::vector<std::int64_t> vector_;
  std::vector<float> sign_;
};

double dot(const float* a, const float* b, std::int64_t count) {
  std::array<double, 8> sums{};  // side by side, as one sum would wait for every addition
  constexpr std::int64_t kLanes = sums.size();
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      sums[std::size_t(lane)] += double(a[i + lane]) * double(b[i + lane]);
  for (std::int64_t i = whole; i < count; ++i) sums[0] += double(a[i]) * double(b[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Returns orthonormal rows that span what the rows of m do, by the method of Gram and Schmidt.
// Rows that the others span but for rounding are left out.
Matrix<float> orthonormal_rows(Matrix<float> m) {
  constexpr double kRounding = 1e-4;
  const std::int64_t count = m.cols();
  std::int64_t kept = 0;
  for (std::int64_t r = 0; r < m.rows(); ++r) {
    float* const own = m.view().row(kept);
    if (kept < r) std::copy_n(m.view().row(r), count, own);
    const double before = std::sqrt(dot(own, own, count));
    for (int turn = 0; turn < 2; ++turn)  // the second one removes what rounding left
      for (std::int64_t i = 0; i < kept; ++i) {
        const float* const other = m.view().row(i);
        const auto part = float(dot(own, other, count));
        for (std::int64_t k = 0; k < count; ++k) own[k] -= part * other[k];
      }
    const double after = std::sqrt(dot(own, own, count));
    if (after <= kRounding * before) continue;
    for (std::int64_t k = 0; k < count; ++k) own[k] = float(double(own[k]) / after);
    ++kept;
  }
  Matrix<float> rows(kept, count);
  std::copy_n(m.elements().begin(), rows.elements().size(), rows.elements().begin());
  return rows;
}

bool all_finite(const Matrix<float>& m) {
  return std::all_of(m.elements().begin(), m.elements().end(),
                     [](float v) { return std::isfinite(v); });
}

}  // namespace

std::optional<GradientFactors> gradient_factors(std::span<const GradientBatch> batches,
                                                std::uint64_t seed, Executor& executor) {
  if (!batches.empty() && batches[0].q_grad.rows > batches[0].s.rows) {
    std::vector<GradientBatch> turned;  // its products are the cheaper ones
    for (const GradientBatch& b : batches) turned.push_back({b.s, b.q_grad});
    auto made = gradient_factors(turned, seed, executor);
    if (made) std::swap(made->left, made->right);
    return made;
  }
  if (!pays(batches)) return std::nullopt;
  const Mixing mixing(batches[0].s.rows, seed);
  std::vector<Matrix<float>> thin;  // [rank][z] of each batch
  thin.reserve(batches.size());
  std::vector<GradientBatch> pairs;
  for (const GradientBatch& b : batches)
    pairs.push_back({thin.emplace_back(mixing(b.s)).view(), b.q_grad});
  Matrix<float> span = sum_of_products(pairs, executor);
  if (!all_finite(span)) return std::nullopt;
  GradientFactors made{orthonormal_rows(std::move(span)), {}};
  thin.clear();
  pairs.clear();
  for (const GradientBatch& b : batches) {
    const GradientBatch own{made.left.view(), b.q_grad.transposed()};
    pairs.push_back({thin.emplace_back(sum_of_products({&own, 1}, executor)).view(), b.s});
  }
  made.right = sum_of_products(pairs, executor);
  if (!all_finite(made.right)) return std::nullopt;
  return made;
}

}  // namespace tessera::train::internal
