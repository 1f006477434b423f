#include "tessera/train/rewire/internal/sample_search.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train::internal {
namespace {

// Block rows that a thread takes at once: an eighth of all, so that threads finish together.
std::int64_t rows_at_once(std::int64_t rows) {
  constexpr std::int64_t kParts = 8;
  return std::clamp<std::int64_t>(ceil_div(rows, kParts), 1, host::PlacesGradient::kRowsOfACall);
}

// Makes the list long enough. It keeps its length, so that nothing is set to zero twice.
void grow(std::vector<float>& list, std::size_t size) {
  if (list.size() < size) list.resize(size);
}

}  // namespace

SampleSearch::SampleSearch(const SampledPlaces& from, std::int64_t k, int threads, float threshold)
    : from_(from),
      rows_at_once_(rows_at_once(from.taken.block_rows())),
      best_(k, from.taken.block_cols(), threshold) {
  scratch_.resize(std::size_t(threads));
  const auto cols = std::size_t(from.taken.block_cols());
  for (Scratch& scratch : scratch_) {
    scratch.is_taken.resize(cols);
    scratch.large.resize(cols + host::kLargeSlack);
    scratch.found.reserve(cols);
  }
}

void SampleSearch::draw(Range rows, Scratch& scratch) const {
  const auto most = std::size_t(from_.taken.block_cols()) + 1;  // that a row may need
  std::size_t count = 0;
  scratch.row_begin.assign(1, 0);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    if (scratch.col.size() < count + most) scratch.col.resize(2 * count + most);
    count += from_.sample.draw(row, scratch.is_taken, std::span(scratch.col).subspan(count));
    scratch.row_begin.push_back(std::int64_t(count));
  }
  grow(scratch.gradients, count * std::size_t(from_.taken.block.area()));
}

// Returns numbers whose magnitudes are the scores of some places.
std::span<const float> SampleSearch::scores(Range places, Scratch& scratch) const {
  const BlockShape block = from_.taken.block;
  const auto count = std::size_t(places.size());
  const float* gradient = scratch.gradients.data() + places.begin * block.area();
  if (block.is_element()) return {gradient, count};
  grow(scratch.scores, count);
  for (std::size_t i = 0; i < count; ++i, gradient += block.area())
    scratch.scores[i] =
        host::score_of({gradient, block.rows, block.cols, block.cols, 1}, block, from_.pool);
  return std::span(scratch.scores).first(count);
}

void SampleSearch::find(Range places, std::int32_t row, Scratch& scratch) {
  const std::span<const float> values = scores(places, scratch);
  const std::int64_t count = host::find_large(values, best_.threshold(), scratch.large);
  const std::int32_t* const col = scratch.col.data() + places.begin;
  scratch.found.clear();
  for (const std::uint32_t i : std::span(scratch.large).first(std::size_t(count))) {
    const sparse::BlockAt at{row, col[i]};
    const float score = std::abs(values[i]);
    if (score <= host::kLargestScore)
      scratch.found.push_back({score, at});
    else if (!scratch.bad || at < *scratch.bad)
      scratch.bad = at;
  }
  if (!scratch.found.empty()) best_.add(scratch.found);
}

void SampleSearch::run(std::int64_t thread) {
  Scratch& scratch = scratch_[std::size_t(thread)];
  const std::int64_t count = from_.taken.block_rows();
  for (auto first = rows_at_once_ * next_++; first < count; first = rows_at_once_ * next_++) {
    const Range rows{first, std::min(first + rows_at_once_, count)};
    draw(rows, scratch);
    const auto places = std::size_t(scratch.row_begin.back());
    from_.gradient.compute(
        rows.begin, scratch.row_begin, std::span(scratch.col).first(places),
        std::span(scratch.gradients).first(places * std::size_t(from_.taken.block.area())));
    for (std::int64_t r = 0; r < rows.size(); ++r)
      find({scratch.row_begin[std::size_t(r)], scratch.row_begin[std::size_t(r) + 1]},
           static_cast<std::int32_t>(first + r), scratch);
  }
}

std::optional<sparse::BlockAt> SampleSearch::bad() const {
  std::optional<sparse::BlockAt> first;
  for (const Scratch& scratch : scratch_)
    if (scratch.bad && (!first || *scratch.bad < *first)) first = scratch.bad;
  return first;
}

}  // namespace tessera::train::internal
