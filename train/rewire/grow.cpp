#include "tessera/train/rewire/grow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/internal/sample.hpp"
#include "tessera/train/rewire/internal/sample_search.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using host::check_batches;
using host::check_growth;
using host::kLargestScore;
using host::refuse_score;
using internal::PlaceList;
using internal::scores_at;
using sparse::BlockAt;
using sparse::Csr;

// Free places are drawn by numbers of 32 bits.
constexpr std::int64_t kMostDrawn = std::numeric_limits<std::int32_t>::max();

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
float likely_threshold(const GradientSearch& search, std::int64_t among, std::int64_t elements,
                       Executor& executor) {
  constexpr std::int64_t kFewestPlaces = 256, kFewestShare = 8;
  const std::int64_t count = std::max(kFewestPlaces, elements / search.taken.block.area());
  if (among < kFewestShare * count) return 0;
  const PlaceList places = sample_places(search.taken, count);
  std::vector<float> scores =
      scores_at(search.taken, search.batches, places, search.score, executor);
  for (const float score : scores)
    if (!(score <= kLargestScore)) return 0;
  // Four deviations of the number of places in the sample that are among the best.
  const double expected = double(scores.size()) * double(search.k) / double(among);
  const auto above = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 3);
  if (above >= scores.size()) return 0;
  std::nth_element(scores.begin(), scores.begin() + std::ptrdiff_t(above), scores.end(),
                   std::greater<>());
  return scores[above];
}

}  // namespace

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

std::vector<BlockAt> exact_gradients(const GradientSearch& search, Executor& executor) {
  check_growth(search.taken, search.k, search.name);
  check_batches(search.taken, search.batches, search.name);
  if (search.k == 0) return {};
  // The sample reads all of S. A threshold saves less than that where there are more columns
  // (1024 x 1024, 4,096 columns: the search takes 1.02 instead of 1.17 dense products).
  constexpr std::int64_t kTried = 4096, kMostColumns = 1024;
  GradientSearch with_guess = search;
  with_guess.likely = internal::columns_of(search.batches) > kMostColumns
                          ? 0
                          : likely_threshold(search, free_places(search.taken), kTried, executor);
  return host::largest_gradients(with_guess, executor);
}

std::vector<BlockAt> sampled_gradients(const GradientSearch& wanted, const Candidates& candidates,
                                       Executor& executor) {
  const auto& [taken, batches, k, pool, name, likely] = wanted;
  check_growth(taken, k, name);
  check_batches(taken, batches, name);
  if (k == 0) return {};
  // Four deviations more than k places, so that a sample rarely has fewer.
  const double most = std::max(double(candidates.count), double(k) + 4 * std::sqrt(double(k)));
  const double free = double(free_places(taken));
  const host::PlacesGradient gradient(taken.block, std::max(candidates.count, k), batches,
                                      executor);
  constexpr std::int64_t kTried = 2048;
  for (double share = std::min(1.0, most / free);; share = std::min(1.0, 2 * share)) {
    const internal::SampleRows sample(taken, share, candidates.seed);
    const auto among = static_cast<std::int64_t>(share * free);
    for (float threshold = likely_threshold(wanted, among, kTried, executor);; threshold = 0) {
      internal::SampleSearch search({taken, sample, gradient, pool}, k, executor.threads(),
                                    threshold);
      executor.for_each(executor.threads(), [&](std::int64_t thread) { search.run(thread); });
      if (search.bad()) refuse_score(*search.bad(), name);
      if (search.is_full()) return search.places();
      if (threshold == 0) break;  // the sample is too small
    }
  }
}

// Free places are numbered in row-major order, and k of the numbers are drawn.
std::vector<BlockAt> random_places(const Csr<float>& taken, std::int64_t k, std::uint64_t seed,
                                   std::string_view name) {
  check_growth(taken, k, name);
  const std::int64_t free = free_places(taken);
  if (k > 0 && free > kMostDrawn)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("random places: {}: {} places are free; at most {} can be drawn from; "
                            "choose larger blocks or growth by largest gradient",
                            name, free, kMostDrawn));
  const std::vector<std::int64_t> drawn = sparse::random_choice(free, k, seed);
  std::vector<BlockAt> places;
  places.reserve(drawn.size());
  std::int64_t before = 0;  // free places in the rows before this one
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::int32_t* const first = taken.col.data() + taken.row_begin[std::size_t(row)];
    const std::int64_t stored =
        taken.row_begin[std::size_t(row) + 1] - taken.row_begin[std::size_t(row)];
    const std::int64_t end = before + taken.block_cols() - stored;
    std::int64_t passed = 0;  // taken columns before the place
    for (std::size_t next = places.size(); next < drawn.size() && drawn[next] < end; ++next) {
      const std::int64_t number = drawn[next] - before;
      while (passed < stored && first[passed] - passed <= number) ++passed;
      places.push_back({row, static_cast<std::int32_t>(number + passed)});
    }
    before = end;
  }
  return places;
}

}  // namespace tessera::train
