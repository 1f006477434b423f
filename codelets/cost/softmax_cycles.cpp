#include "tessera/codelets/cost/softmax_cycles.hpp"

#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kLanes = 2;   // floats in a vector of 64 bits
constexpr std::int64_t kStart = 15;  // of a worker, as in zero_cycles
constexpr std::int64_t kRun = 3;     // in each walk: address and length of a run, and its loop
constexpr std::int64_t kMask = 4;    // a value of a mask: its word, shift, comparison, selection

// Widening or narrowing of so many arrays.
std::int64_t conversions(DataType type, std::int64_t arrays) {
  return type == DataType::Float ? 0 : arrays;
}

Cycles walks(const SoftmaxWork& slowest, std::int64_t count, std::int64_t per_vector,
             std::int64_t per_row, std::int64_t workers) {
  if (slowest.values == 0) return {};
  return Cycles(workers *
                (kStart + per_row * slowest.rows + count * kRun * slowest.runs +
                 per_vector * ceil_div(slowest.values, kLanes) + count * kMask * slowest.masked));
}

}  // namespace

Cycles softmax_cycles(const SoftmaxWork& slowest, DataType type, std::int64_t workers) {
  // Largest: load, scale, maximum. Exponentials: load, scale, difference, the 6 cycles of the
  // table, sum. Results: load, product, store. A row ends with the larger and the sum of two lanes,
  // the 6 cycles of an inverse, and the test for a row that is empty.
  return walks(slowest, /*count=*/3, 3 + 3 + 6 + 1 + 3 + conversions(type, 5), 3 + 2 + 6 + 1,
               workers);
}

Cycles softmax_gradient_cycles(const SoftmaxWork& slowest, DataType type, std::int64_t workers) {
  // Sum: two loads, a fused product and sum. Results: two loads, difference, two products, store.
  return walks(slowest, /*count=*/2, 3 + 6 + conversions(type, 5), 3 + 1, workers);
}

}  // namespace tessera::codelets
