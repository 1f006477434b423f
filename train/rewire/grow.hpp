#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/largest_gradients.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::train {

using codelets::BlockScore;
using host::free_places;
using host::GradientSearch;

// The functions below that find the places of largest gradient.
enum class Search {
  Exact,      // exact_gradients
  Shortlist,  // shortlisted_gradients
  Sampled     // sampled_gradients
};

// Returns "exact", "shortlist" or "sampled".
const char* to_string(Search search);

// The operands of a weight gradient dQ * transpose(S) of one batch: q_grad is [rows][z] and s is
// [cols][z] for weights of [rows][cols]. Rows that are left out of the last block count as 0.
using GradientBatch = host::GradientOperands;

// All functions below return k places in row-major order, none of them stored in the pattern
// `taken` (its values are not read). With the pattern that stays after a drop as `taken`, dropped
// places may come back; with the pattern before the drop they may not. They throw
// Error{InvalidArgument} for k outside [0, free places]. The same arguments give the same places
// for any number of threads. GradientSearch::likely is not read, as each search guesses itself.

// Some of the free places, among which a search that is not exact looks.
struct Candidates {
  std::int64_t count = 0;
  std::uint64_t seed = 1;  // of the random numbers that choose them
};

// Returns the places of largest gradient, summed over the batches. Of equal scores the lower place
// is taken first. The dense gradient is computed in panels and never kept: memory is, for each
// thread, one panel with its rows of S (1 MiB for a batch of 128), and 3 * k candidates. Throws
// Error{InvalidArgument} for operands of another shape than the weights, and Error{BadInput}, which
// names the place, if the score of a free place is NaN or infinite. O(rows * cols * z).
std::vector<sparse::BlockAt> exact_gradients(const GradientSearch& search, Executor& executor);

// Returns the places of largest gradient among a random sample of the free places, so no dense
// gradient is computed. Each free place is in the sample with the same probability, so that it has
// as many candidates on average, or a few more than k if that is more; all free places are the
// sample if there are fewer. Neither the sample nor its gradients are kept: memory is a part of
// them for each thread and 2 * k candidates. Errors are those of exact_gradients. O(candidates *
// z * block area + stored).
std::vector<sparse::BlockAt> sampled_gradients(const GradientSearch& search,
                                               const Candidates& candidates, Executor& executor);

// Returns the places of largest gradient of a shortlist: a search in a matrix of rank 32 that is
// nearly the gradient finds the candidates, or k places if that is more, and their gradients are
// then computed. The matrix is that of Halko, Martinsson and Tropp, "Finding structure with
// randomness", 2011. The search is exact where the matrix would cost more than half of it: for
// sides up to 192, and for batches of up to 64 columns. Errors are those of exact_gradients.
// O((rows + cols) * z * 32 + rows * cols * 32 + candidates * z * block area).
std::vector<sparse::BlockAt> shortlisted_gradients(const GradientSearch& search,
                                                   const Candidates& candidates,
                                                   Executor& executor);

// Returns k random places. Every choice of that many free places is equally likely. Throws
// Error{LimitExceeded} if more than 2^31 - 1 places are free.
// O(stored + k * log(k)), or O(free places) if more than 1 in 16 of them is taken.
std::vector<sparse::BlockAt> random_places(const sparse::Csr<float>& taken, std::int64_t k,
                                           std::uint64_t seed, std::string_view name = "weights");

}  // namespace tessera::train
