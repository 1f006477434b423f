#include "tessera/train/rewire/grow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/internal/best_places.hpp"
#include "tessera/train/rewire/internal/sample.hpp"
#include "tessera/train/rewire/internal/sample_search.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using internal::BestPlaces;
using internal::Candidate;
using internal::check_batches;
using internal::kLargestScore;
using internal::PlaceList;
using internal::refuse_score;
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

// Returns a random sample of about `count` free places.
PlaceList sample_places(const Csr<float>& taken, std::int64_t count) {
  const internal::SampleRows sample(taken, double(count) / double(free_places(taken)), /*seed=*/1);
  const auto width = std::size_t(taken.block_cols());
  std::vector<char> is_taken(width);
  std::vector<std::int32_t> cols(width + 1);
  PlaceList places{{0}, {}};
  for (std::int64_t row = 0; row < taken.block_rows(); ++row) {
    const std::size_t drawn = sample.draw(row, is_taken, cols);
    places.col.insert(places.col.end(), cols.begin(), cols.begin() + std::ptrdiff_t(drawn));
    places.row_begin.push_back(std::ssize(places.col));
  }
  return places;
}

// Returns a score that a few more than k of `among` random free places reach, by those of a random
// sample of about `elements`, so that few candidates have to be held; 0 if the sample says too
// little.
float likely_threshold(const Csr<float>& taken, std::span<const GradientBatch> batches,
                       std::int64_t k, std::int64_t among, std::int64_t elements, Pool pool,
                       Executor& executor) {
  constexpr std::int64_t kFewestPlaces = 256, kFewestShare = 8;
  const std::int64_t count = std::max(kFewestPlaces, elements / taken.block.area());
  if (among < kFewestShare * count) return 0;
  const PlaceList places = sample_places(taken, count);
  std::vector<float> scores = scores_at(taken, batches, places, pool, executor);
  for (const float score : scores)
    if (!(score <= kLargestScore)) return 0;
  // Four deviations of the number of places in the sample that are among the best.
  const double expected = double(scores.size()) * double(k) / double(among);
  const auto above = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 3);
  if (above >= scores.size()) return 0;
  std::nth_element(scores.begin(), scores.begin() + std::ptrdiff_t(above), scores.end(),
                   std::greater<>());
  return scores[above];
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
      const auto width = std::size_t(size_.cols / taken.block.cols);
      if (!taken.block.is_element()) made.scores.resize(width);
      made.is_taken.resize(width);
      made.positions.resize(width + host::kLargeSlack);
      made.found.reserve(width);
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
    std::vector<float> scores;             // of one row of blocks
    std::vector<char> is_taken;            // false between rows
    std::vector<std::uint32_t> positions;  // of large scores
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
      find(
          scratch,
          scores_of_row(scratch, panel.sub({r, std::min(r + height, panel.rows)}, {0, panel.cols})),
          {block_row, block_col});
      best_.add(scratch.found);
    }
  }

  // Returns numbers whose magnitudes are the scores of a row.
  std::span<const float> scores_of_row(Scratch& scratch, MatrixView<const float> row) const {
    if (taken_.block.is_element()) return {row.data, std::size_t(row.cols)};
    const std::int64_t width = taken_.block.cols;
    const auto count = static_cast<std::size_t>(ceil_div(row.cols, width));
    const std::span<float> scores = std::span(scratch.scores).first(count);
    for (std::int64_t c = 0; c < std::ssize(scores); ++c)
      scores[std::size_t(c)] =
          score_of(row.sub({0, row.rows}, {c * width, std::min((c + 1) * width, row.cols)}),
                   taken_.block, pool_);
    return scores;
  }

  // Lists the free places whose score reaches the threshold, and the first bad one.
  void find(Scratch& scratch, std::span<const float> scores, BlockAt first) const {
    scratch.found.clear();
    const std::int64_t count = host::find_large(scores, best_.threshold(), scratch.positions);
    if (count == 0) return;
    const auto row_end = taken_.col.begin() + taken_.row_begin[std::size_t(first.row) + 1];
    const auto begin = std::lower_bound(
        taken_.col.begin() + taken_.row_begin[std::size_t(first.row)], row_end, first.col);
    const auto end_col = first.col + static_cast<std::int32_t>(scores.size());
    auto end = begin;
    for (; end != row_end && *end < end_col; ++end)
      scratch.is_taken[std::size_t(*end - first.col)] = 1;
    for (const std::uint32_t i : std::span(scratch.positions).first(std::size_t(count))) {
      if (scratch.is_taken[i] != 0) continue;
      const float score = std::abs(scores[i]);
      const BlockAt at{first.row, first.col + static_cast<std::int32_t>(i)};
      if (score <= kLargestScore)
        scratch.found.push_back({score, at});
      else if (!scratch.bad || at < *scratch.bad)
        scratch.bad = at;
    }
    for (auto at = begin; at != end; ++at) scratch.is_taken[std::size_t(*at - first.col)] = 0;
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

const char* to_string(Pool pool) {
  switch (pool) {
    case Pool::Sum:
      return "sum";
    case Pool::Max:
      return "max";
    case Pool::Mean:
      return "mean";
  }
  return "";
}

const char* to_string(Search search) {
  switch (search) {
    case Search::Exact:
      return "exact";
    case Search::Shortlist:
      return "shortlist";
    case Search::Sampled:
      return "sampled";
  }
  return "";
}

std::int64_t free_places(const Csr<float>& taken) {
  return taken.block_rows() * taken.block_cols() - taken.blocks();
}

std::vector<BlockAt> largest_gradients(const Csr<float>& taken,
                                       std::span<const GradientBatch> batches, std::int64_t k,
                                       Pool pool, Executor& executor, std::string_view name) {
  check_growth(taken, k, name);
  check_batches(taken, batches, name);
  if (k == 0) return {};
  constexpr std::int64_t kTried = 4096;
  for (float threshold =
           likely_threshold(taken, batches, k, free_places(taken), kTried, pool, executor);
       ; threshold = 0) {
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
  if (k == 0) return {};
  // Four deviations more than k places, so that a sample rarely has fewer.
  const double wanted = std::max(double(candidates), double(k) + 4 * std::sqrt(double(k)));
  const double free = double(free_places(taken));
  const host::PlacesGradient gradient(taken.block, std::max(candidates, k), batches, executor);
  constexpr std::int64_t kTried = 2048;
  for (double share = std::min(1.0, wanted / free);; share = std::min(1.0, 2 * share)) {
    const internal::SampleRows sample(taken, share, seed);
    const auto among = static_cast<std::int64_t>(share * free);
    for (float threshold = likely_threshold(taken, batches, k, among, kTried, pool, executor);;
         threshold = 0) {
      internal::SampleSearch search({taken, sample, gradient, pool}, k, executor.threads(),
                                    threshold);
      executor.for_each(executor.threads(), [&](std::int64_t thread) { search.run(thread); });
      if (search.bad()) refuse_score(*search.bad(), name);
      if (search.is_full()) return search.places();
      if (threshold == 0) break;  // the sample is too small
    }
  }
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
