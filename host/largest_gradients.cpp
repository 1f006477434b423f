#include "tessera/host/largest_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/host/internal/share_work.hpp"

namespace tessera::host {

using codelets::BlockScore;
using sparse::BlockAt;
using sparse::Csr;

namespace {

// Returns the size of the panels of a search, not larger than the matrix.
PanelSize panel_size(const Csr<float>& taken) {
  const PanelSize size = gradient_panel_size(taken.block);
  return {std::min(size.rows, taken.rows), std::min(size.cols, taken.cols)};
}

// The search for the places of largest gradient in all panels.
class PanelSearch {
 public:
  PanelSearch(const GradientSearch& search, int threads, float threshold)
      : taken_(search.taken),
        score_(search.score),
        size_(panel_size(taken_)),
        rows_(search.batches.empty() ? taken_.rows : search.batches[0].q_grad.rows),
        cols_(search.batches.empty() ? taken_.cols : search.batches[0].s.rows),
        best_(search.k, size_.cols / taken_.block.cols, threshold),
        panels_(ceil_div(taken_.rows, size_.rows) * ceil_div(taken_.cols, size_.cols)) {
    scratch_.reserve(std::size_t(threads));
    for (int t = 0; t < threads; ++t) {
      Scratch& made = scratch_.emplace_back(GradientPanel(size_, search.batches));
      const auto width = std::size_t(size_.cols / taken_.block.cols);
      if (!taken_.block.is_element()) made.scores.resize(width);
      made.is_taken.resize(width);
      made.positions.resize(width + kLargeSlack);
      made.found.reserve(width);
    }
  }

  // Takes panels of columns until none is left.
  void run(std::int64_t thread) {
    Scratch& scratch = scratch_[std::size_t(thread)];
    const std::int64_t down = ceil_div(taken_.rows, size_.rows);
    while (const auto panel = panels_.next())
      search_panel(scratch, panel->begin % down * size_.rows, panel->begin / down * size_.cols);
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
    explicit Scratch(GradientPanel made) : panel(std::move(made)) {}
    GradientPanel panel;
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
                   taken_.block, score_);
    return scores;
  }

  // Lists the free places whose score reaches the threshold, and the first bad one.
  void find(Scratch& scratch, std::span<const float> scores, BlockAt first) const {
    scratch.found.clear();
    const std::int64_t count = find_large(scores, best_.threshold(), scratch.positions);
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
  BlockScore score_;
  PanelSize size_;
  std::int64_t rows_, cols_;  // of the operands
  BestPlaces best_;
  std::vector<Scratch> scratch_;
  internal::SharedParts panels_;
};

}  // namespace

std::int64_t free_places(const Csr<float>& taken) {
  return taken.block_rows() * taken.block_cols() - taken.blocks();
}

void check_growth(const Csr<float>& taken, std::int64_t k, std::string_view name) {
  const std::int64_t free = free_places(taken);
  if (k < 0 || k > free)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("growth of blocks: {}: {} of {} free places; the number must be in "
                            "0..{}",
                            name, k, free, free));
}

void check_batches(const Csr<float>& taken, std::span<const GradientOperands> batches,
                   std::string_view name) {
  for (const GradientOperands& b : batches)
    if (round_up(b.q_grad.rows, taken.block.rows) != taken.rows ||
        round_up(b.s.rows, taken.block.cols) != taken.cols || b.q_grad.cols != b.s.cols)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("growth of blocks: {} of {} x {}: the gradient of the output is {} x "
                              "{} and the input {} x {}; they must be {} x z and {} x z",
                              name, taken.rows, taken.cols, b.q_grad.rows, b.q_grad.cols, b.s.rows,
                              b.s.cols, taken.rows, taken.cols));
}

std::vector<BlockAt> largest_gradients(const GradientSearch& search, Executor& executor) {
  check_growth(search.taken, search.k, search.name);
  check_batches(search.taken, search.batches, search.name);
  if (search.k == 0) return {};
  for (float threshold = search.likely;; threshold = 0) {
    PanelSearch panels(search, executor.threads(), threshold);
    executor.for_each(executor.threads(), [&](std::int64_t thread) { panels.run(thread); });
    if (threshold == 0 || panels.is_complete()) return panels.places(search.name);
  }
}

}  // namespace tessera::host
