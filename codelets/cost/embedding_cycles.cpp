#include "tessera/codelets/cost/embedding_cycles.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kWorkerStart = 15;  // as in zero_cycles

}  // namespace

Cycles enter_rows_cycles(std::int64_t rows, std::int64_t requests, std::int64_t workers) {
  constexpr std::int64_t kPlaceBytes = 2, kInstructions = 3;  // the row, its number, a store
  return zero_cycles(rows * kPlaceBytes, workers) +
         Cycles(workers * (kWorkerStart + kInstructions * ceil_div(requests, workers)));
}

Cycles walk_rows_cycles(const RowsWork& work, std::int64_t per_value, std::int64_t workers) {
  constexpr std::int64_t kRowInstructions =
      8;  // three loads, a branch, the address of the next row
  if (work.rows == 0) return {};
  return Cycles(workers * (kWorkerStart + kRowInstructions * ceil_div(work.rows, workers) +
                           per_value * work.slowest_values));
}

Cycles gather_cycles(std::int64_t n, DataType type, std::int64_t workers) {
  const bool half = bytes_of(type) == 2;
  const std::int64_t width = half ? 4 : 2, turns = ceil_div(n / width, workers);
  const std::int64_t vectors = turns == 0 ? 0 : half ? 8 + 5 * (turns - 1) : 5 + 3 * (turns - 1);
  constexpr std::int64_t kHalfRest[] = {0, 10, 10, 14};
  const std::int64_t rest = half ? kHalfRest[n % 4] : n % 2 == 0 ? 0 : 5;
  const std::int64_t saved = turns == 0 ? 0 : half ? 5 : 3;
  return Cycles(18 + workers * (23 + std::max(vectors, vectors + rest - saved)));
}

Cycles scatter_add_cycles(const ScatterWork& work, DataType type, std::int64_t workers) {
  const std::int64_t half = bytes_of(type) == 2 ? 1 : 0;
  constexpr std::int64_t kBisection = 6, kNumber = 2, kFurther = 3;
  if (work.slowest == 0 || work.columns == 0) return {};
  std::int64_t steps = 0;
  while (std::int64_t{1} << steps < work.ids) ++steps;
  const std::int64_t entry = 11 + half + kNumber + half + (kFurther + half) * (work.columns - 1);
  return Cycles(workers * (17 + half + kBisection * steps + entry * work.slowest));
}

}  // namespace tessera::codelets
