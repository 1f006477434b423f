#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host {

// A search among the blocks that a pattern does not store. All that it refers to must outlive it.
struct GradientSearch {
  const sparse::Csr<float>& taken;            // the pattern; its values are not read
  std::span<const GradientOperands> batches;  // whose gradients are summed
  std::int64_t k = 0;                         // 0 .. free_places(taken)
  codelets::BlockScore score = codelets::BlockScore::Sum;
  std::string_view name = "weights";  // of the weights in messages
  // A guess that saves time: a score that at least k places are likely to reach. The result does
  // not depend on it.
  float likely = 0;
};

// Returns the k blocks whose gradient dQ * transpose(S) is largest among those that the pattern
// does not store, in row-major order; of equal scores the lower place is taken first. Rows that an
// operand leaves out of the last block count as 0. The dense gradient is computed in panels and
// never kept: memory is, for each thread, one panel with its rows of S (1 MiB for a batch of 128),
// and 3 * k candidates. The places are those of a search on a modelled machine
// (runtime::FullyConnected), unless two scores are equal but for rounding, and the same for any
// number of threads. Throws Error{InvalidArgument} for operands of another shape than the weights
// and for k outside 0 .. free places, and Error{BadInput}, which names the place, if the score of a
// free place is NaN or infinite. O(rows * cols * z).
std::vector<sparse::BlockAt> largest_gradients(const GradientSearch& search, Executor& executor);

// Returns the number of blocks that a pattern does not store.
std::int64_t free_places(const sparse::Csr<float>& taken);

// Throws Error{InvalidArgument} unless k is in 0 .. free_places(taken).
void check_growth(const sparse::Csr<float>& taken, std::int64_t k, std::string_view name);

// Throws Error{InvalidArgument} unless the operands of each batch have the shapes of these weights.
void check_batches(const sparse::Csr<float>& taken, std::span<const GradientOperands> batches,
                   std::string_view name);

}  // namespace tessera::host
