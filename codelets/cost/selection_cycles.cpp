#include "tessera/codelets/cost/selection_cycles.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kLanes = 2;      // floats in a vector of 64 bits
constexpr std::int64_t kStart = 15;     // of a worker: its share, and the loop
constexpr std::int64_t kPerVector = 2;  // load, magnitude
constexpr std::int64_t kPerJoin = 1;    // of two vectors or numbers of a block
constexpr std::int64_t kPerTest = 2;    // of a vector of scores: comparison, branch

// Word of the pattern, its bit, branch; place, two stores, counter, comparison with the capacity.
constexpr std::int64_t kPerAdded = 8;

// A selection finds the score of the last place that stays by its bits, 4 in a pass: load, shift,
// mask, and load, increment and store of a counter. Then it moves the places that stay: load of
// score and place, comparison, two stores. Fewer bits take more passes, more bits more counters.
constexpr std::int64_t kPasses = 8, kPerCount = 6, kPerMove = 5;
constexpr std::int64_t kCounters = 16, kPerCounter = 2;  // of each worker: load, sum

}  // namespace

Cycles selection_cycles(const SelectionSize& size, const SelectionWork& work,
                        std::int64_t workers) {
  const auto share = [workers](std::int64_t count) { return ceil_div(count, workers); };
  std::int64_t worker = 0;
  if (size.elements > 0) {
    const std::int64_t vectors = ceil_div(size.elements, kLanes);
    worker += kStart + share(vectors) * kPerVector +
              share(ceil_div(size.elements - size.blocks, kLanes)) * kPerJoin +
              share(ceil_div(size.blocks, kLanes)) * kPerTest + share(work.added) * kPerAdded;
  }
  const std::int64_t selection =
      workers * (kStart + share(2 * size.keep) * (kPasses * kPerCount + kPerMove)) +
      kPasses * kCounters * workers * kPerCounter;
  return Cycles(workers * worker + work.selections * selection);
}

// The threshold is that of the best `keep` places so far, so after `n` blocks a share of keep / n
// of the next ones reaches it: each further selection takes twice as many blocks as there were.
SelectionWork expected_selection(std::int64_t blocks, std::int64_t keep) {
  SelectionWork work{.added = std::min(blocks, 2 * keep)};
  for (std::int64_t seen = 2 * keep; seen <= blocks; seen *= 2) {
    ++work.selections;
    work.added += keep * (std::min(2 * seen, blocks) - seen) / seen;
  }
  if (blocks > keep) ++work.selections;  // finish_best()
  return work;
}

std::int64_t best_list_bytes(std::int64_t keep) {
  return 2 * keep * std::int64_t(sizeof(ScoredPlace));
}

}  // namespace tessera::codelets
