#pragma once

#include <cmath>

namespace tessera::arrays::internal {

// Returns the square root of the sum of squares of all values, in double. each(see) must call
// see(value) for every value; it is called a second time, to sum scaled values, if squares would
// overflow or underflow.
template <class Each>
double euclidean_norm(Each&& each) {
  double largest = 0, sum = 0;
  each([&](double value) {
    largest = std::fmax(largest, std::abs(value));
    sum += value * value;
  });
  // Inside these bounds no square overflows or loses digits to the subnormal numbers.
  if (!std::isfinite(largest) || std::isnan(sum) || (largest > 0x1p-450 && largest < 0x1p+450))
    return std::sqrt(sum);
  if (largest == 0) return 0;
  sum = 0;
  each([&](double value) { sum += (value / largest) * (value / largest); });
  return largest * std::sqrt(sum);
}

}  // namespace tessera::arrays::internal
