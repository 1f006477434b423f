#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train::internal {

// A matrix that is nearly a weight gradient: transpose(left) * right. The factor with the shorter
// rows has orthonormal ones.
struct GradientFactors {
  Matrix<float> left;   // [rank][rows of dQ]
  Matrix<float> right;  // [rank][rows of S]

  GradientBatch operands() const { return {left.view().transposed(), right.view().transposed()}; }
};

// Returns the gradient dQ * transpose(S), summed over the batches, but for what is outside of the
// space that its products with 32 random vectors span: Halko, Martinsson and Tropp, "Finding
// structure with randomness", 2011, algorithm 4.1. A vector adds up rows of S with random signs,
// each row in one vector (Charikar, Chen and Farach-Colton, "Finding frequent items in data
// streams", 2002). Gradients of training have few large singular values, late in it as well, when
// those of single images nearly cancel (bench/results/top_k.md). Exact for a rank up to 32, but for
// rounding. Returns nothing if the factors would cost more than half of the gradient, and if a
// number is not finite. The same bits for any number of threads. O((rows + cols) * z).
std::optional<GradientFactors> gradient_factors(std::span<const GradientBatch> batches,
                                                std::uint64_t seed, Executor& executor);

}  // namespace tessera::train::internal
