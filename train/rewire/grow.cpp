#include "tessera/train/rewire/grow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/internal/best_places.hpp"
#include "tessera/train/rewire/internal/scores.hpp"
#include "tessera/train/rewire/internal/select.hpp"

namespace tessera::train {
namespace {

using internal::BestPlaces;
using internal::Candidate;
using internal::kLargestScore;
using internal::PlaceList;
using internal::score_of;
using internal::scores_at;
using sparse::BlockAt;
using sparse::Csr;

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

// Free places are drawn by numbers of 32 bits.
constexpr std::int64_t kMostDrawn = std::numeric_limits<std::int32_t>::max();

// Returns k random free places. They are numbered in row-major order, and k of the numbers are
// drawn.
PlaceList draw_places(const Csr<float>& taken, std::int64_t k, std::uint64_t seed,
                      std::string_view name) {
  const std::int64_t free = free_places(taken);
  if (k > 0 && free > kMostDrawn)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("random places: {}: {} places are free; at most {} can be drawn from; "
                            "choose larger blocks or growth by largest gradient",
                            name, free, kMostDrawn));
  const std::vector<std::int64_t> drawn = sparse::random_choice(free, k, seed);
  PlaceList places{{0}, std::vector<std::int32_t>(drawn.size())};
  places.row_begin.reserve(std::size_t(taken.block_rows()) + 1);
  std::int64_t before = 0;  // free places in the rows before this one
  std::size_t next = 0;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::int32_t* const first = taken.col.data() + taken.row_begin[std::size_t(row)];
    const std::int64_t stored =
        taken.row_begin[std::size_t(row) + 1] - taken.row_begin[std::size_t(row)];
    const std::int64_t end = before + taken.block_cols() - stored;
    std::int64_t passed = 0;  // taken columns before the place
    for (; next < drawn.size() && drawn[next] < end; ++next) {
      const std::int64_t number = drawn[next] - before;
      while (passed < stored && first[passed] - passed <= number) ++passed;
      places.col[next] = static_cast<std::int32_t>(number + passed);
    }
    before = end;
    places.row_begin.push_back(std::int64_t(next));
  }
  return places;
}

BlockAt place_of(const PlaceList& places, std::int64_t i) {
  const auto row = std::upper_bound(places.row_begin.begin(), places.row_begin.end(), i) - 1;
  return {std::int32_t(row - places.row_begin.begin()), places.col[std::size_t(i)]};
}

// Returns a score that about 1.3 * k free places reach, by those of a random sample, so that few
// candidates have to be held; 0 if the sample says too little.
float likely_threshold(const Csr<float>& taken, std::span<const GradientBatch> batches,
                       std::int64_t k, Pool pool, Executor& executor) {
  constexpr std::int64_t kMostElements = 16384, kFewestPlaces = 256, kFewestShare = 8;
  const std::int64_t free = free_places(taken);
  if (free > kMostDrawn) return 0;
  const std::int64_t count = std::max(kFewestPlaces, kMostElements / taken.block.area());
  if (free < kFewestShare * count) return 0;
  const PlaceList places = draw_places(taken, count, /*seed=*/1, "");
  std::vector<float> scores = scores_at(taken, batches, places, pool, executor);
  for (const float score : scores)
    if (!(score <= kLargestScore)) return 0;
  // Three deviations of the number of places in the sample that are among the best.
  const double expected = double(count) * double(k) / double(free);
  const auto above = static_cast<std::int64_t>(1.3 * expected + 3 * std::sqrt(expected) + 3);
  if (above >= count) return 0;
  std::nth_element(scores.begin(), scores.begin() + above, scores.end(), std::greater<>());
  return scores[std::size_t(above)];
}

// Returns the size of the panels of a search, not larger than the matrix.
host::PanelSize panel_size(const Csr<float>& taken) {
  const host::PanelSize size = host::gradient_panel_size(taken.block);
  return {std::min(size.rows, taken.rows), std::min(size.cols, taken.cols)};
}

// The search for the places of largest gradient in all panels.
class PanelSearch {
 public:
  PanelSearch(const Csr<float>& taken, std::span<const GradientBatch> batches, std::int64_t k,
              Pool pool, int threads, float threshold)
      : taken_(taken),
        pool_(pool),
        size_(panel_size(taken)),
        rows_(batches.empty() ? taken.rows : batches[0].q_grad.rows),
        cols_(batches.empty() ? taken.cols : batches[0].s.rows),
        best_(k, size_.cols / taken.block.cols, threshold) {
    scratch_.reserve(std::size_t(threads));
    for (int t = 0; t < threads; ++t) {
      Scratch& made = scratch_.emplace_back(host::GradientPanel(size_, batches));
      made.scores.resize(std::size_t(size_.cols / taken.block.cols));
      made.found.reserve(std::size_t(size_.cols / taken.block.cols));
    }
  }

  // Takes panels of columns until none is left.
  void run(std::int64_t thread) {
    Scratch& scratch = scratch_[std::size_t(thread)];
    const std::int64_t down = ceil_div(taken_.rows, size_.rows);
    const std::int64_t count = down * ceil_div(taken_.cols, size_.cols);
    for (std::int64_t i = next_++; i < count; i = next_++)
      search_panel(scratch, i % down * size_.rows, i / down * size_.cols);
  }

  // Returns true if the threshold was not too high, or a score is bad.
  bool is_complete() const {
    return best_.is_full() || std::any_of(scratch_.begin(), scratch_.end(),
                                          [](const Scratch& s) { return s.bad.has_value(); });
  }

  std::vector<BlockAt> places(std::string_view name) {
    std::optional<BlockAt> bad;
    for (const Scratch& s : scratch_)
      if (s.bad && (!bad || *s.bad < *bad)) bad = s.bad;
    if (bad) refuse_score(*bad, name);
    return best_.places();
  }

 private:
  struct Scratch {  // of one thread
    explicit Scratch(host::GradientPanel made) : panel(std::move(made)) {}
    host::GradientPanel panel;
    std::vector<float> scores;  // of one block row; -1 where a place is taken
    std::vector<Candidate> found;
    std::optional<BlockAt> bad;  // the first place whose score is not finite
  };

  void search_panel(Scratch& scratch, std::int64_t row, std::int64_t col) {
    const Range rows{row, std::min(row + size_.rows, rows_)};
    const Range cols{col, std::min(col + size_.cols, cols_)};
    const MatrixView<const float> panel = scratch.panel.compute(rows, cols);
    const std::int64_t height = taken_.block.rows;
    for (std::int64_t r = 0; r < panel.rows; r += height) {
      const auto block_row = static_cast<std::int32_t>((row + r) / height);
      const auto block_col = static_cast<std::int32_t>(col / taken_.block.cols);
      const std::span<float> scores =
          scores_of_row(scratch, panel.sub({r, std::min(r + height, panel.rows)}, {0, panel.cols}));
      skip_taken(block_row, block_col, scores);
      find(scratch, scores, {block_row, block_col});
      best_.add(scratch.found);
    }
  }

  std::span<float> scores_of_row(Scratch& scratch, MatrixView<const float> row) const {
    const std::int64_t width = taken_.block.cols;
    const auto count = static_cast<std::size_t>(ceil_div(row.cols, width));
    const std::span<float> scores = std::span(scratch.scores).first(count);
    if (taken_.block.is_element())
      for (std::size_t c = 0; c < count; ++c) scores[c] = std::abs(row.data[c]);
    else
      for (std::int64_t c = 0; c < std::ssize(scores); ++c)
        scores[std::size_t(c)] =
            score_of(row.sub({0, row.rows}, {c * width, std::min((c + 1) * width, row.cols)}),
                     taken_.block, pool_);
    return scores;
  }

  void skip_taken(std::int32_t row, std::int32_t col, std::span<float> scores) const {
    const auto end = col + static_cast<std::int32_t>(scores.size());
    const auto first = taken_.col.begin() + taken_.row_begin[std::size_t(row)],
               last = taken_.col.begin() + taken_.row_begin[std::size_t(row) + 1];
    for (auto at = std::lower_bound(first, last, col); at != last && *at < end; ++at)
      scores[std::size_t(*at - col)] = -1;
  }

  // Most scores are below the threshold, so they are looked at 16 at a time, which the compiler
  // does on vectors.
  void find(Scratch& scratch, std::span<const float> scores, BlockAt first) const {
    constexpr std::size_t kTogether = 16;
    scratch.found.clear();
    const float threshold = best_.threshold();
    for (std::size_t begin = 0; begin < scores.size(); begin += kTogether) {
      const auto part = scores.subspan(begin, std::min(kTogether, scores.size() - begin));
      int any = 0;
      for (const float score : part) any |= !(score < threshold);
      if (any == 0) continue;
      for (std::size_t i = 0; i < part.size(); ++i) {
        const BlockAt at{first.row, first.col + static_cast<std::int32_t>(begin + i)};
        if (part[i] >= threshold && part[i] <= kLargestScore)
          scratch.found.push_back({part[i], at});
        else if (!(part[i] <= kLargestScore) && (!scratch.bad || at < *scratch.bad))
          scratch.bad = at;
      }
    }
  }

  const Csr<float>& taken_;
  Pool pool_;
  host::PanelSize size_;
  std::int64_t rows_, cols_;  // of the operands
  BestPlaces best_;
  std::vector<Scratch> scratch_;
  std::atomic<std::int64_t> next_{0};
};

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
  for (float threshold = likely_threshold(taken, batches, k, pool, executor);; threshold = 0) {
    PanelSearch search(taken, batches, k, pool, executor.threads(), threshold);
    executor.for_each(executor.threads(), [&](std::int64_t thread) { search.run(thread); });
    if (threshold == 0 || search.is_complete()) return search.places(name);
  }
}

std::vector<BlockAt> sampled_gradients(const Csr<float>& taken,
                                       std::span<const GradientBatch> batches, std::int64_t k,
                                       std::int64_t candidates, Pool pool, std::uint64_t seed,
                                       Executor& executor, std::string_view name) {
  check_growth(taken, k, name);
  check_batches(taken, batches, name);
  const std::int64_t count = std::min(std::max(candidates, k), free_places(taken));
  const PlaceList places = draw_places(taken, count, seed, name);
  const std::vector<float> scores = scores_at(taken, batches, places, pool, executor);
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!(scores[i] <= kLargestScore)) refuse_score(place_of(places, std::int64_t(i)), name);
  std::vector<BlockAt> best;
  best.reserve(std::size_t(k));
  std::int32_t row = 0;
  for (const std::int64_t i : internal::largest(scores, k)) {
    while (places.row_begin[std::size_t(row) + 1] <= i) ++row;
    best.push_back({row, places.col[std::size_t(i)]});
  }
  return best;
}

std::vector<BlockAt> random_places(const Csr<float>& taken, std::int64_t k, std::uint64_t seed,
                                   std::string_view name) {
  check_growth(taken, k, name);
  const PlaceList drawn = draw_places(taken, k, seed, name);
  std::vector<BlockAt> places;
  places.reserve(drawn.col.size());
  for (std::int32_t row = 0; row < taken.block_rows(); ++row)
    for (auto i = drawn.row_begin[std::size_t(row)]; i < drawn.row_begin[std::size_t(row) + 1]; ++i)
      places.push_back({row, drawn.col[std::size_t(i)]});
  return places;
}

}  // namespace tessera::train
