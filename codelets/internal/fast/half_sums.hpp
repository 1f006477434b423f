#pragma once

#include <cstdint>

#include "tessera/base/half.hpp"

// The loops of element kernels with half sums on vectors. They have the bits of add_scaled_row()
// and dot() of arithmetic.hpp: a product is rounded to half, and then the sum is.
namespace tessera::codelets::internal {

// Computes out[z] += r * in[z] for z in [0, count).
void add_scaled_half_row(Half* out, Half r, const Half* in, std::int64_t count) noexcept;

// Returns the sum over z of a[z] * b[z], with column z in lane z % kSumLanes.
Half half_dot(const Half* a, const Half* b, std::int64_t count) noexcept;

}  // namespace tessera::codelets::internal
