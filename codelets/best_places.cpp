#include "tessera/codelets/best_places.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/fast/scores.hpp"

namespace tessera::codelets {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t block_columns(const GradientPart& part) {
  return ceil_div(part.columns, part.block.cols);
}

// Returns both scores as one; a NaN stays.
float joined(float a, float b, BlockScore rule) {
  if (rule != BlockScore::Max) return a + b;
  if (b <= a || std::isnan(a)) return a;
  return b;
}

float block_score(const GradientPart& part, std::int64_t block_row, std::int64_t block_column) {
  const std::int64_t first_row = block_row * part.block.rows,
                     first_column = block_column * part.block.cols;
  const std::int64_t rows = std::min(part.block.rows, part.rows - first_row),
                     columns = std::min(part.block.cols, part.columns - first_column);
  float score = 0;
  for (std::int64_t c = 0; c < columns; ++c) {
    const float* const first = part.gradients + first_row * part.columns + first_column + c;
    float column = std::abs(*first);
    for (std::int64_t r = 1; r < rows; ++r)
      column = joined(column, std::abs(first[r * part.columns]), part.score);
    score = c == 0 ? column : joined(score, column, part.score);
  }
  return score;
}

bool is_taken(const GradientPart& part, std::int64_t block_row, std::int64_t block_column) {
  const std::int64_t bit = block_row * block_columns(part) + block_column;
  return (part.taken[std::size_t(bit / 32)] >> (bit % 32) & 1) != 0;
}

// Selects the best places of a list that has more than it keeps.
void select(BestList& list) {
  ScoredPlace* const last = list.places + list.keep - 1;
  std::nth_element(list.places, last, list.places + list.count, is_better);
  list.count = list.keep;
  list.threshold = last->score;
}

// Adds one block whose score reaches the threshold.
SelectionWork offer(const GradientPart& part, std::int64_t block_row, std::int64_t block_column,
                    float score, BestList& list) {
  if (is_taken(part, block_row, block_column)) return {};
  const std::int64_t place =
      (part.first_row + block_row) * part.matrix_columns + part.first_column + block_column;
  const ScoredPlace found{score < kInfinity ? score : kInfinity, std::uint32_t(place)};
  if (list.after != nullptr && !is_better(*list.after, found)) return {};
  list.places[list.count++] = found;
  if (list.count < 2 * list.keep) return {.added = 1};
  select(list);
  return {.added = 1, .selections = 1};
}

// The scores of as many whole blocks of a block row as fit on the stack.
struct Strip {
  static constexpr std::int64_t kMost = 1024;
  std::array<float, kMost> scores;

  // Returns 0 for a block that is wider than the strip.
  static std::int64_t blocks(BlockShape block) { return kMost / block.cols; }

  // Joins the scores of the columns of each block, in place.
  void join_columns(std::int64_t columns, BlockShape block, BlockScore rule) {
    for (std::int64_t c = 0, b = 0; c < columns; c += block.cols, ++b) {
      float score = scores[std::size_t(c)];
      for (std::int64_t i = c + 1; i < std::min(c + block.cols, columns); ++i)
        score = joined(score, scores[std::size_t(i)], rule);
      scores[std::size_t(b)] = score;
    }
  }
};

}  // namespace

const char* to_string(BlockScore score) {
  switch (score) {
    case BlockScore::Sum:
      return "sum";
    case BlockScore::Max:
      return "max";
    case BlockScore::Mean:
      return "mean";
  }
  return "";
}

SelectionWork add_best_reference(const GradientPart& part, BestList& list) noexcept {
  SelectionWork work;
  for (std::int64_t r = 0; r < ceil_div(part.rows, part.block.rows); ++r)
    for (std::int64_t c = 0; c < block_columns(part); ++c) {
      const float score = block_score(part, r, c);
      if (!(score < list.threshold)) work += offer(part, r, c, score, list);
    }
  return work;
}

SelectionWork add_best(const GradientPart& part, BestList& list) noexcept {
  SelectionWork work;
  Strip strip;
  const std::int64_t at_once = Strip::blocks(part.block), all = block_columns(part);
  if (at_once == 0) return add_best_reference(part, list);
  for (std::int64_t r = 0; r < ceil_div(part.rows, part.block.rows); ++r)
    for (std::int64_t first = 0; first < all; first += at_once) {
      const std::int64_t count = std::min(at_once, all - first);
      const std::int64_t column = first * part.block.cols;
      const std::int64_t columns = std::min(count * part.block.cols, part.columns - column);
      internal::column_scores(part, r, column, columns, strip.scores.data());
      if (part.block.cols > 1) strip.join_columns(columns, part.block, part.score);
      const auto next = [&](std::int64_t begin) {
        return internal::first_not_below(strip.scores.data(), begin, count, list.threshold);
      };
      for (std::int64_t i = next(0); i < count; i = next(i + 1))
        work += offer(part, r, first + i, strip.scores[std::size_t(i)], list);
    }
  return work;
}

SelectionWork finish_best(BestList& list) noexcept {
  const bool selects = list.count > list.keep;
  if (selects) select(list);
  std::sort(list.places, list.places + list.count, is_better);
  return {.selections = selects ? 1 : 0};
}

}  // namespace tessera::codelets
