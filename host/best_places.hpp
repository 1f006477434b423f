#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::host {

// A score above this is infinite.
inline constexpr float kLargestScore = std::numeric_limits<float>::max();

// Returns the score of one block from the gradients of its elements, which are a view: rows and
// columns that an operand leaves out are not in it. Sums are taken in double. O(elements).
float score_of(MatrixView<const float> gradient, BlockShape block, codelets::BlockScore rule);

// Throws Error{BadInput}: the gradient at this place is not finite.
[[noreturn]] void refuse_score(sparse::BlockAt at, std::string_view name);

// A free place with the score of its gradient.
struct Candidate {
  float score = 0;
  sparse::BlockAt at;
};

// Keeps the k best of any number of candidates: those of largest score and, of equal ones, those of
// lower place. The result does not depend on the order in which they come. Any number of threads
// may add. It holds 2 * k candidates, or k and `most_at_once` if that is more.
class BestPlaces {
 public:
  // Begins with a threshold, which is the caller's guess: if fewer than k candidates were held in
  // the end, it was too high.
  BestPlaces(std::int64_t k, std::int64_t most_at_once, float threshold = 0);

  // Returns a score below which no candidate can be among the best. It only rises.
  float threshold() const { return threshold_.load(std::memory_order_relaxed); }

  // Adds at most `most_at_once` candidates. Allocates nothing.
  void add(std::span<const Candidate> candidates);

  // Returns true if there were at least k candidates.
  bool is_full() const { return held_.size() >= k_; }

  // Returns the best places in row-major order.
  std::vector<sparse::BlockAt> places();

 private:
  void keep_best();
  void drop_below_border();

  std::size_t k_, capacity_;
  std::atomic<float> threshold_{0};
  std::mutex mutex_;
  std::vector<Candidate> held_;
};

}  // namespace tessera::host
