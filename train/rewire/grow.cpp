#include "tessera/train/rewire/grow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/internal/best_places.hpp"
#include "tessera/train/rewire/internal/gradient_panel.hpp"

namespace tessera::train {
namespace {

using internal::BestPlaces;
using internal::Candidate;
using internal::GradientPanel;
using sparse::BlockAt;
using sparse::Csr;

constexpr float kLargestScore = std::numeric_limits<float>::max();

void check_growth(const Csr<float>& taken, std::int64_t k, std::string_view name) {
  const std::int64_t free = free_places(taken);
  if (k < 0 || k > free)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("growth of blocks: {}: {} of {} free places; the number must be in "
                            "0..{}",
                            name, k, free, free));
}

void check_batches(const Csr<float>& taken, std::span<const GradientBatch> batches,
                   std::string_view name) {
  for (const GradientBatch& b : batches)
    if (round_up(b.q_grad.rows, taken.block.rows) != taken.rows ||
        round_up(b.s.rows, taken.block.cols) != taken.cols || b.q_grad.cols != b.s.cols)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("growth of blocks: {} of {} x {}: the gradient of the output is {} x "
                              "{} and the input {} x {}; they must be {} x z and {} x z",
                              name, taken.rows, taken.cols, b.q_grad.rows, b.q_grad.cols, b.s.rows,
                              b.s.cols, taken.rows, taken.cols));
}

[[noreturn]] void refuse_score(BlockAt at, std::string_view name) {
  throw Error(ErrorCode::BadInput,
              fmt::format("growth of blocks: {}: the gradient in block row {}, block column {} is "
                          "not finite",
                          name, at.row, at.col));
}

// Returns the score of one block, whose rows are `stride` apart.
float score_of(const float* gradient, std::int64_t stride, BlockShape block, Pool pool) {
  double sum = 0, most = 0;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (std::int64_t c = 0; c < block.cols; ++c) {
      const double size = std::abs(double(gradient[r * stride + c]));
      sum += size;
      most = std::isnan(size) ? size : std::max(most, size);
    }
  switch (pool) {
    case Pool::Sum:
      return float(sum);
    case Pool::Max:
      return float(most);
    case Pool::Mean:
      return float(sum / double(block.area()));
  }
  return 0;
}

// The search for the places of largest gradient in all panels.
class PanelSearch {
 public:
  PanelSearch(const Csr<float>& taken, std::span<const GradientBatch> batches, std::int64_t k,
              Pool pool, int threads)
      : taken_(taken),
        pool_(pool),
        size_{round_up(kPanelRows, taken.block.rows), round_up(kPanelCols, taken.block.cols)},
        best_(k, size_.rows * size_.cols / taken.block.area()) {
    scratch_.reserve(std::size_t(threads));
    for (int t = 0; t < threads; ++t) {
      Scratch& made = scratch_.emplace_back(GradientPanel(size_, batches));
      made.scores.resize(std::size_t(size_.cols / taken.block.cols));
      made.found.reserve(std::size_t(size_.rows * size_.cols / taken.block.area()));
    }
  }

  // Takes panels of columns until none is left.
  void run(std::int64_t thread) {
    Scratch& scratch = scratch_[std::size_t(thread)];
    for (;;) {
      const std::int64_t begin = size_.cols * next_.fetch_add(1);
      if (begin >= taken_.cols) return;
      const std::int64_t count = std::min(size_.cols, taken_.cols - begin);
      scratch.panel.set_columns(begin, count);
      for (std::int64_t row = 0; row < taken_.rows; row += size_.rows)
        search_rows(scratch, row, begin, count);
    }
  }

  std::vector<BlockAt> places(std::string_view name) {
    std::optional<BlockAt> bad;
    for (const Scratch& s : scratch_)
      if (s.bad && (!bad || *s.bad < *bad)) bad = s.bad;
    if (bad) refuse_score(*bad, name);
    return best_.places();
  }

 private:
  // Half of a second-level cache for the columns of s at a batch of 512.
  static constexpr std::int64_t kPanelRows = 16, kPanelCols = 256;

  struct Scratch {  // of one thread
    explicit Scratch(GradientPanel made) : panel(std::move(made)) {}
    GradientPanel panel;
    std::vector<float> scores;  // of one block row; -1 where a place is taken
    std::vector<Candidate> found;
    std::optional<BlockAt> bad;  // the first place whose score is not finite
  };

  void search_rows(Scratch& scratch, std::int64_t row, std::int64_t col, std::int64_t cols) {
    const std::int64_t rows = std::min(size_.rows, taken_.rows - row);
    const std::span<const float> panel = scratch.panel.compute(row, rows);
    scratch.found.clear();
    for (std::int64_t r = 0; r < rows; r += taken_.block.rows)
      search_block_row(scratch, panel.data() + r * size_.cols,
                       std::int32_t((row + r) / taken_.block.rows),
                       std::int32_t(col / taken_.block.cols), cols / taken_.block.cols);
    best_.add(scratch.found);
  }

  void search_block_row(Scratch& scratch, const float* panel, std::int32_t row, std::int32_t col,
                        std::int64_t count) {
    float* const scores = scratch.scores.data();
    if (taken_.block.is_element())
      for (std::int64_t c = 0; c < count; ++c) scores[c] = std::abs(panel[c]);
    else
      for (std::int64_t c = 0; c < count; ++c)
        scores[c] = score_of(panel + c * taken_.block.cols, size_.cols, taken_.block, pool_);
    const auto first = taken_.col.begin() + taken_.row_begin[std::size_t(row)],
               last = taken_.col.begin() + taken_.row_begin[std::size_t(row) + 1];
    for (auto at = std::lower_bound(first, last, col); at != last && *at < col + count; ++at)
      scores[*at - col] = -1;
    const float threshold = best_.threshold();
    for (std::int32_t c = 0; c < count; ++c) {
      if (scores[c] >= threshold && scores[c] <= kLargestScore)
        scratch.found.push_back({scores[c], {row, col + c}});
      else if (!(scores[c] <= kLargestScore) &&
               (!scratch.bad || BlockAt{row, col + c} < *scratch.bad))
        scratch.bad = {row, col + c};
    }
  }

  const Csr<float>& taken_;
  Pool pool_;
  GradientPanel::Size size_;
  BestPlaces best_;
  std::vector<Scratch> scratch_;
  std::atomic<std::int64_t> next_{0};
};

// Returns the sum of a[i] * b[i], as 16 sums side by side that are then added in order, so that
// vectors compute it with the same bits everywhere.
float dot(MatrixView<const float> a, std::int64_t row_a, MatrixView<const float> b,
          std::int64_t row_b) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> sums{};
  const float *x = a.row(row_a), *y = b.row(row_b);
  const bool contiguous = a.col_stride == 1 && b.col_stride == 1;
  std::int64_t z = 0;
  for (; contiguous && z + kLanes <= a.cols; z += kLanes)
    for (std::int64_t i = 0; i < kLanes; ++i) sums[std::size_t(i)] += x[z + i] * y[z + i];
  for (; z < a.cols; ++z)
    sums[std::size_t(z % kLanes)] += x[z * a.col_stride] * y[z * b.col_stride];
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

float score_at(const Csr<float>& taken, std::span<const GradientBatch> batches, BlockAt at,
               Pool pool, std::span<float> gradient) {
  const BlockShape block = taken.block;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (std::int64_t c = 0; c < block.cols; ++c) {
      const std::int64_t row = at.row * block.rows + r, col = at.col * block.cols + c;
      float sum = 0;
      for (const GradientBatch& b : batches)
        if (row < b.q_grad.rows && col < b.s.rows) sum += dot(b.q_grad, row, b.s, col);
      gradient[std::size_t(r * block.cols + c)] = sum;
    }
  return score_of(gradient.data(), block.cols, block, pool);
}

}  // namespace

std::int64_t free_places(const Csr<float>& taken) {
  return taken.block_rows() * taken.block_cols() - taken.blocks();
}

std::vector<BlockAt> largest_gradients(const Csr<float>& taken,
                                       std::span<const GradientBatch> batches, std::int64_t k,
                                       Pool pool, Executor& executor, std::string_view name) {
  check_growth(taken, k, name);
  check_batches(taken, batches, name);
  if (k == 0) return {};
  PanelSearch search(taken, batches, k, pool, executor.threads());
  executor.for_each(executor.threads(), [&](std::int64_t thread) { search.run(thread); });
  return search.places(name);
}

std::vector<BlockAt> sampled_gradients(const Csr<float>& taken,
                                       std::span<const GradientBatch> batches, std::int64_t k,
                                       std::int64_t candidates, Pool pool, std::uint64_t seed,
                                       Executor& executor, std::string_view name) {
  check_growth(taken, k, name);
  check_batches(taken, batches, name);
  const std::int64_t count = std::min(std::max(candidates, k), free_places(taken));
  const std::vector<BlockAt> places = random_places(taken, count, seed, name);
  const std::int64_t area = taken.block.area(), threads = executor.threads();
  std::vector<Candidate> all(places.size());
  std::vector<float> gradients(std::size_t(threads * area));
  executor.for_each(threads, [&](std::int64_t t) {
    const std::span own(gradients.data() + t * area, std::size_t(area));
    for (std::int64_t i = count * t / threads; i < count * (t + 1) / threads; ++i) {
      const BlockAt at = places[std::size_t(i)];
      all[std::size_t(i)] = {score_at(taken, batches, at, pool, own), at};
    }
  });
  for (const Candidate& c : all)
    if (!(c.score <= kLargestScore)) refuse_score(c.at, name);
  BestPlaces best(k, count);
  best.add(all);
  return best.places();
}

std::vector<BlockAt> random_places(const Csr<float>& taken, std::int64_t k, std::uint64_t seed,
                                   std::string_view name) {
  check_growth(taken, k, name);
  if (k == 0) return {};
  const std::int64_t free = free_places(taken);
  // The free places are numbered in row-major order, and k of their numbers are drawn.
  const std::vector<std::int32_t> drawn =
      sparse::random_pattern(1, free, {}, double(k) / double(free), seed).col;
  std::vector<BlockAt> places;
  places.reserve(drawn.size());
  std::int64_t before = 0;  // free places in the rows before this one
  std::size_t next = 0;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::int64_t first = taken.row_begin[std::size_t(row)],
                       last = taken.row_begin[std::size_t(row) + 1];
    const std::int64_t end = before + taken.block_cols() - (last - first);
    std::int64_t passed = first;  // taken columns before the place are passed over
    for (; next < drawn.size() && drawn[next] < end; ++next) {
      while (passed < last &&
             taken.col[std::size_t(passed)] <= drawn[next] - before + (passed - first))
        ++passed;
      places.push_back({row, std::int32_t(drawn[next] - before + (passed - first))});
    }
    before = end;
  }
  return places;
}

}  // namespace tessera::train
