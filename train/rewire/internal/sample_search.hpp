#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/host/best_places.hpp"
#include "tessera/host/gradient_places.hpp"
#include "tessera/train/rewire/grow.hpp"
#include "tessera/train/rewire/internal/sample.hpp"

namespace tessera::train::internal {

// The inputs of a search among sampled places, all of which must outlive it.
struct SampledPlaces {
  const sparse::Csr<float>& taken;
  const SampleRows& sample;
  const host::PlacesGradient& gradient;
  BlockScore pool;
};

// The search for the k sampled places of largest gradient. Some block rows at a time are drawn,
// scored and forgotten, so neither the sample nor its gradients are kept. `threshold` is the
// caller's guess (host::BestPlaces).
class SampleSearch {
 public:
  SampleSearch(const SampledPlaces& from, std::int64_t k, int threads, float threshold);

  // Takes block rows until none is left; each thread of a search calls it once.
  void run(std::int64_t thread);

  // Returns the first place whose score is not finite.
  std::optional<sparse::BlockAt> bad() const;

  // Returns true if at least k places of the sample reached the threshold.
  bool is_full() const { return best_.is_full(); }

  // Returns the best places in row-major order.
  std::vector<sparse::BlockAt> places() { return best_.places(); }

 private:
  struct Scratch {  // of one thread
    std::vector<char> is_taken;
    std::vector<std::int64_t> row_begin;
    std::vector<std::int32_t> col;  // longer than the places of the rows
    std::vector<float> gradients, scores;
    std::vector<std::uint32_t> large;  // positions of scores that reach the threshold
    std::vector<host::Candidate> found;
    std::optional<sparse::BlockAt> bad;
  };
  void draw(Range rows, Scratch& scratch) const;
  std::span<const float> scores(Range places, Scratch& scratch) const;
  void find(Range places, std::int32_t row, Scratch& scratch);

  SampledPlaces from_;
  std::int64_t rows_at_once_;
  host::BestPlaces best_;
  std::vector<Scratch> scratch_;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace tessera::train::internal
