#pragma once

#include <cmath>

namespace tessera::arrays::internal {

// sqrt of the sum of squares of what each(see) shows to see(value), in double; each() is called
// again with scaled values where squares would overflow or vanish.
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
